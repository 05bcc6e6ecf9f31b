//! The absence of import cycles as a test: within a crate, no file imports a file that imports it in turn.
//!
//! A file imports each file whose items it names, in `use` declarations or in paths. A re-exported name leads to the file
//! that defines it. Names between a module and the modules within it are free, both ways: the inner ones are parts of the
//! outer one. The rest must have no cycle, that is no strongly connected component of several files. What the files of a
//! cycle share moves down:
//!
//! ```text
//! read ──parse_line──▶ write       read    write
//!   ◀────────Line───────┘            └▶ line ◀┘
//! ```
//!
//! Sources are read by name, without types: methods, derived traits and names within strings are not seen.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use common::{read, rust_files, workspace_crates};
use syn::{
    Attribute, Item, UseTree,
    buffer::{Cursor, TokenBuffer},
    ext::IdentExt as _,
    visit::{self, Visit},
};

/// How many import cycles a crate may have. A crate that is not listed may have none; a number may only fall.
const PERMITTED: &[(&str, usize)] = &[];

#[test]
fn files_import_each_other_in_no_cycle() {
    let crates = workspace_crates();
    let mut faults: Vec<String> = crates.iter().filter_map(|(name, path)| fault(name, &sources(path))).collect();
    for (name, _) in PERMITTED.iter().filter(|(name, _)| !crates.contains_key(*name)) {
        faults.push(format!("there is no crate {name}: remove it from PERMITTED in crates/fabric/tests/circles.rs"));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_cycle_is_two_files_that_name_each_others_items() {
    let cycle = ["a.rs -> b.rs: B", "b.rs -> a.rs: A"];
    check(&[("a.rs", "use crate::b::B; pub struct A(B);"), ("b.rs", "use crate::a::A; pub struct B(A);")], &cycle);
    check(&[("a.rs", "use crate::b::B; pub struct A(B);"), ("b.rs", "pub struct B;")], &[]);
    // In nested groups, by another name, from the parent, and with no `use` at all.
    check(
        &[("a.rs", "use crate::{b::{self, B as C}}; pub struct A(C);"), ("b.rs", "use super::a::A; pub struct B;")],
        &cycle,
    );
    check(&[("a.rs", "pub struct A(super::b::B);"), ("b.rs", "pub struct B; fn f() { crate::a::A::new(); }")], &cycle);
    check(
        &[("a.rs", "use super::b; pub struct A(b::B);"), ("b.rs", "use self::super::a; pub type B = [a::A; 2];")],
        &cycle,
    );
    // By a glob, in the arguments of macros and attributes, and where a macro defines the item.
    check(
        &[("a.rs", "use super::b::*; pub struct A(B);"), ("b.rs", "struct B; fn f() { g!(1, (0 as crate::a::A)) }")],
        &cycle,
    );
    check(&[("a.rs", "d!(A, crate::b::B);"), ("b.rs", "#[error(\"\", a = crate::a::A::C)] pub struct B;")], &cycle);
    check(&[("a.rs", "use super::b::*; pub struct A;"), ("b.rs", "pub struct B(crate::a::A);")], &[]);
}

#[test]
fn a_re_exported_name_counts_for_the_file_that_defines_it() {
    let b = ("b.rs", "use crate::a::A; pub struct B(A);");
    let root = "mod a; mod b; mod d; pub use d::{E, B};";
    check(
        &[("lib.rs", root), ("a.rs", "pub struct A(crate::E);"), b, ("d.rs", "pub use crate::b::B as E;")],
        &["a.rs -> b.rs: B", "b.rs -> a.rs: A"],
    );
    let d = ("d.rs", "pub use crate::b::*;");
    check(
        &[("lib.rs", root), ("a.rs", "use crate::B; pub struct A(B);"), b, d],
        &["a.rs -> b.rs: B", "b.rs -> a.rs: A"],
    );
}

#[test]
fn a_module_and_the_modules_within_it_may_name_each_other() {
    let root = ("lib.rs", "mod a; pub struct Root(a::A);");
    let inner = ("a/inner.rs", "use super::A; use crate::Root; pub struct Inner(A, Root);");
    check(&[root, ("a/mod.rs", "mod inner; use inner::Inner; pub struct A(Inner);"), inner], &[]);
    check(&[root, ("a.rs", "mod inner; use inner::Inner; pub struct A(Inner);"), inner], &[]);
}

#[test]
fn comments_strings_tests_and_other_crates_names_are_no_imports() {
    let b = ("b.rs", "use crate::a::A; pub struct B(A);");
    check(
        &[("a.rs", "// use crate::b::B;\n/// [`crate::b::B`]\npub struct A; const S: &str = \"crate::b::B\";"), b],
        &[],
    );
    check(&[("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"), b], &[]);
    check(&[("a.rs", "pub struct A; #[cfg(test)] use crate::b::B; #[cfg(test)] fn f(_: B) {}"), b], &[]);
    check(&[("a.rs", "pub struct A; impl A { #[cfg(test)] fn f(_: crate::b::B) {} }"), b], &[]);
    check(&[("a.rs", "use serde::b::B; pub struct A(::b::B, B);"), b], &[]);
    check(&[("a.rs", "pub struct A; fn f(x: X) { g!(x.b::<A>()); x.b() }"), b], &[]);
}

#[test]
fn a_file_is_named_in_the_cycle_that_it_is_in_and_in_no_other() {
    let sources = [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::{d::D, e::E}; pub struct C;"),
        ("d.rs", "use crate::c::C; pub struct D;"),
        ("e.rs", "pub struct E;"),
    ];
    let cycles = cycles(&sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into());
    assert_eq!(cycles, [vec!["a.rs -> b.rs: B", "b.rs -> a.rs: A"], vec!["c.rs -> d.rs: D", "d.rs -> c.rs: C"]]);
}

#[test]
fn the_permitted_number_may_only_fall() {
    let with_a_cycle = [("lib.rs", "mod a; mod b;"), ("a.rs", "fn f() { crate::b::g() }"), ("b.rs", "pub fn g() {}")];
    let without = BTreeMap::from(with_a_cycle.map(|(file, text)| (file.to_owned(), text.to_owned())));
    let mut with = without.clone();
    with.insert("b.rs".to_owned(), "pub fn g() { super::a::f() }".to_owned());
    let says = |permitted: usize, sources: &Sources, part: &str| {
        let fault = fault_beyond(permitted, "c", sources).unwrap_or_default();
        assert_eq!(fault.is_empty(), part.is_empty(), "{fault}");
        assert!(fault.contains(part), "{fault}");
    };
    says(0, &without, "");
    says(1, &with, "");
    says(0, &with, "a.rs -> b.rs: g");
    says(1, &without, "lower its number");
}

/// Compares the arrows of all cycles of a made-up crate; without a `lib.rs` its modules are `a` and `b`.
fn check(files: &[(&str, &str)], expect: &[&str]) {
    let mut sources = Sources::from([("lib.rs".to_owned(), "mod a; mod b;".to_owned())]);
    sources.extend(files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())));
    assert_eq!(cycles(&sources).concat(), expect, "{files:?}");
}

/// The text of each file under a crate's `src`, by the file's path within it.
type Sources = BTreeMap<String, String>;

fn sources(folder: &Path) -> Sources {
    let src = folder.join("src");
    let name = |file: &Path| file.strip_prefix(&src).expect("a file of src").display().to_string();
    rust_files(&src).iter().map(|file| (name(file), read(file))).collect()
}

fn fault(name: &str, sources: &Sources) -> Option<String> {
    let permitted = PERMITTED.iter().find(|(listed, _)| *listed == name).map_or(0, |(_, permitted)| *permitted);
    fault_beyond(permitted, name, sources)
}

/// What is wrong when a crate has more or fewer import cycles than `permitted`.
fn fault_beyond(permitted: usize, name: &str, sources: &Sources) -> Option<String> {
    let cycles = cycles(sources);
    let found = cycles.len();
    if found < permitted {
        return Some(format!(
            "crate {name}: {permitted} import cycles permitted, {found} found: lower its number in PERMITTED in \
             crates/fabric/tests/circles.rs"
        ));
    }
    (found > permitted).then(|| {
        let mut fault = format!(
            "crate {name}: {permitted} import cycles permitted, {found} found: move what the files of a cycle share down \
             into a file that imports none of them"
        );
        for (number, arrows) in cycles.iter().enumerate() {
            write!(fault, "\n  cycle {}:\n    {}", number + 1, arrows.join("\n    ")).expect("a string takes all");
        }
        fault
    })
}

/// The import cycles of a crate: the arrows within each strongly connected component, as `file -> file: names`, in order.
fn cycles(sources: &Sources) -> Vec<Vec<String>> {
    let arrows = arrows(sources);
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|from| (*from, reached_from(from, &next))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let (mut cycles, mut seen) = (Vec::new(), BTreeSet::new());
    for file in next.keys().filter(|file| reaches(file, file)) {
        let is_in = |other: &str| reaches(file, other) && reaches(other, file);
        if seen.insert(*file) {
            seen.extend(next.keys().filter(|other| is_in(other)));
            let within = arrows.iter().filter(|((from, to), _)| is_in(from) && is_in(to));
            cycles.push(within.map(|((from, to), names)| format!("{from} -> {to}: {}", list(names))).collect());
        }
    }
    cycles
}

fn reached_from<'a>(from: &'a str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        open.extend(next.get(file).into_iter().flatten().filter(|to| reached.insert(**to)));
    }
    reached
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Which file names which items of which other file, but for a module and those within it.
fn arrows(sources: &Sources) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut arrows: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for root in sources.keys().filter(|file| is_root(file)) {
        let tree = ModuleTree::of(root, sources);
        for (at, module) in tree.modules.iter().enumerate() {
            let imported = module.imports.iter().map(|import| &import.path);
            for path in imported.chain(&module.paths) {
                if let Some((target, name)) = tree.definition(at, path) {
                    let target = &tree.modules[target];
                    let within = target.file_path.starts_with(&module.file_path);
                    if !within && !module.file_path.starts_with(&target.file_path) {
                        let arrow = (module.file.clone(), target.file.clone());
                        arrows.entry(arrow).or_default().insert(name);
                    }
                }
            }
        }
    }
    arrows
}

/// Whether a file is the root of a library or a program.
fn is_root(file: &str) -> bool {
    file == "lib.rs" || file == "main.rs" || file.starts_with("bin/") && !file[4..].contains('/')
}

/// The modules of a library or a program; the first is its root.
struct ModuleTree {
    modules: Vec<Module>,
}

#[derive(Default)]
struct Module {
    file: String,
    /// Path of the module whose body `file` is; a module in braces has its surrounding file's.
    file_path: Vec<String>,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Items that the module itself defines.
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in code.
    paths: Vec<Vec<String>>,
}

/// One name that a `use` declaration brings in; `alias` is `*` for a glob.
struct Import {
    alias: String,
    path: Vec<String>,
}

/// What a path names: a module, or an item by the module that defines it and its name there.
enum Target {
    Module(usize),
    Item(usize, String),
}

/// Whether a name is looked up among modules or among items: the two may share a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Module,
    Item,
}

/// Names already looked up, by module: re-exports may lead back to themselves.
type Seen = BTreeSet<(usize, String, Kind)>;

impl ModuleTree {
    fn of(root: &str, sources: &Sources) -> Self {
        let mut tree = Self { modules: vec![Module { file: root.to_owned(), ..Module::default() }] };
        tree.read_file(0, sources);
        tree
    }

    /// Reads the file of module `at`, and the files of the modules that it declares.
    fn read_file(&mut self, at: usize, sources: &Sources) {
        let file = &self.modules[at].file;
        let parsed = syn::parse_file(&sources[file]).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_items(at, &parsed.items, &self.modules[at].file_path.clone(), sources);
    }

    fn read_items(&mut self, at: usize, items: &[Item], path: &[String], sources: &Sources) {
        for item in items {
            match item {
                Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    self.read_module(at, module, &[path, &[module.ident.unraw().to_string()]].concat(), sources);
                }
                Item::Mod(_) => {}
                item => {
                    self.modules[at].items.extend(name_of(item));
                    self.modules[at].visit_item(item);
                }
            }
        }
    }

    fn read_module(&mut self, parent: usize, module: &syn::ItemMod, path: &[String], sources: &Sources) {
        let at = self.modules.len();
        let mut child = Module { parent: Some(parent), ..Module::default() };
        if module.content.is_some() {
            child.file.clone_from(&self.modules[parent].file);
            child.file_path.clone_from(&self.modules[parent].file_path);
        } else {
            let stem = path.join("/");
            let file = [format!("{stem}.rs"), format!("{stem}/mod.rs")].into_iter().find(|it| sources.contains_key(it));
            child.file = file.unwrap_or_else(|| panic!("{}: no file of module {stem}", self.modules[parent].file));
            child.file_path = path.to_vec();
        }
        self.modules[parent].children.insert(path.last().expect("a name").clone(), at);
        self.modules.push(child);
        match &module.content {
            Some((_, items)) => self.read_items(at, items, path, sources),
            None => self.read_file(at, sources),
        }
    }

    /// The module that defines the item which `path` names in module `at`, and the item's name there.
    fn definition(&self, at: usize, path: &[String]) -> Option<(usize, String)> {
        match self.resolve(at, path, Kind::Item, &mut BTreeSet::new())? {
            Target::Module(_) => None,
            Target::Item(module, name) => Some((module, name)),
        }
    }

    fn resolve(&self, at: usize, path: &[String], last: Kind, seen: &mut Seen) -> Option<Target> {
        let mut module = at;
        for (place, name) in path.iter().enumerate() {
            let kind = if place + 1 == path.len() { last } else { Kind::Module };
            let found = match name.as_str() {
                "crate" => Target::Module(0),
                "self" => Target::Module(module),
                "super" => Target::Module(self.modules[module].parent?),
                name => match self.find(module, name, kind, seen) {
                    Some(found) => found,
                    // It belongs to another crate, or is a local name.
                    None if place == 0 || self.modules[module].imports_anything_as(name) => return None,
                    // A macro or an `extern` block defines it.
                    None => Target::Item(module, name.to_owned()),
                },
            };
            match found {
                Target::Module(inner) => module = inner,
                // What follows is a variant or an associated item.
                item @ Target::Item(..) => return Some(item),
            }
        }
        Some(Target::Module(module))
    }

    /// What `name` is in a module: what it defines of the kind, imports by name, imports by a glob, or defines of the
    /// other kind, whichever comes first.
    fn find(&self, at: usize, name: &str, kind: Kind, seen: &mut Seen) -> Option<Target> {
        if !seen.insert((at, name.to_owned(), kind)) {
            return None;
        }
        let module = &self.modules[at];
        let child = module.children.get(name).map(|child| Target::Module(*child));
        let item = module.items.contains(name).then(|| Target::Item(at, name.to_owned()));
        let (own, other) = if kind == Kind::Module { (child, item) } else { (item, child) };
        let in_globs = |seen: &mut Seen| {
            self.imported(at, "*", kind, seen).into_iter().find_map(|target| match target {
                Target::Module(module) => self.find(module, name, kind, seen),
                Target::Item(..) => None,
            })
        };
        own.or_else(|| self.imported(at, name, kind, seen).into_iter().next()).or_else(|| in_globs(seen)).or(other)
    }

    /// What the imports of a module with an alias lead to.
    fn imported(&self, at: usize, alias: &str, kind: Kind, seen: &mut Seen) -> Vec<Target> {
        let imports = self.modules[at].imports.iter().filter(|import| import.alias == alias);
        let last = if alias == "*" { Kind::Module } else { kind };
        imports.filter_map(|import| self.resolve(at, &import.path, last, seen)).collect()
    }
}

impl Module {
    fn imports_anything_as(&self, name: &str) -> bool {
        self.imports.iter().any(|import| import.alias == name || import.alias == "*")
    }

    /// Notes the imports of a `use` tree that stands behind `prefix`.
    fn read_use(&mut self, tree: &UseTree, prefix: &[String]) {
        let join = |name: &syn::Ident| match name.unraw().to_string() {
            name if name == "self" && !prefix.is_empty() => prefix.to_vec(),
            name => [prefix, &[name]].concat(),
        };
        let (alias, path) = match tree {
            UseTree::Path(path) => return self.read_use(&path.tree, &join(&path.ident)),
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.read_use(tree, prefix)),
            UseTree::Name(name) => (join(&name.ident).pop().unwrap_or_default(), join(&name.ident)),
            UseTree::Rename(rename) => (rename.rename.unraw().to_string(), join(&rename.ident)),
            UseTree::Glob(_) => ("*".to_owned(), prefix.to_vec()),
        };
        self.imports.push(Import { alias, path });
    }

    /// Notes the paths among the tokens of a macro or an attribute.
    fn read_tokens(&mut self, mut cursor: Cursor<'_>) {
        // What follows a dot is a member; what follows `::` without a name belongs to another crate or a generic type.
        let (mut path, mut is_member) = (Vec::new(), false);
        while !cursor.eof() {
            if let Some((name, next)) = cursor.ident() {
                if !is_member {
                    path.push(name.unraw().to_string());
                }
                if let Some(next) = double_colon(next) {
                    cursor = next;
                    continue;
                }
                (cursor, is_member) = (next, false);
            } else if let Some((_, next)) = cursor.lifetime() {
                cursor = next;
            } else if let Some(next) = double_colon(cursor) {
                (cursor, is_member) = (next, true);
            } else if let Some((inside, _, _, next)) = cursor.any_group() {
                self.read_tokens(inside);
                (cursor, is_member) = (next, false);
            } else if let Some((punct, next)) = cursor.punct() {
                (cursor, is_member) = (next, punct.as_char() == '.' && !is_member);
            } else if let Some((_, next)) = cursor.token_tree() {
                (cursor, is_member) = (next, false);
            }
            if !path.is_empty() {
                self.paths.push(std::mem::take(&mut path));
            }
        }
        self.paths.extend((!path.is_empty()).then_some(path));
    }
}

/// What follows `::`, when that is next.
fn double_colon(cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, next) = cursor.punct()?;
    let (second, next) = next.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(next)
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes_of(item).is_some_and(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.read_use(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.read_tokens(TokenBuffer::new2(call.tokens.clone()).begin());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.read_tokens(TokenBuffer::new2(list.tokens.clone()).begin());
        }
    }
}

/// Whether attributes keep an item for tests alone: `#[cfg(test)]`, or `test` as one of all conditions.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        condition == "test" || condition.replace(' ', "").starts_with("all(test,")
    })
}

fn attributes_of(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.unraw().to_string())
}
