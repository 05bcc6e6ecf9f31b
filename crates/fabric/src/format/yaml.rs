//! YAML 1.2 texts as trees with places, and the quoting that keeps a name a name.
//!
//! `saphyr-parser` delivers events; a stack of open collections turns them into a tree. An alias shares its anchor's
//! node, so that the "billion laughs" text takes as much memory as it has characters, and depth is counted through
//! aliases, so that no walk of the tree runs out of stack; scalars keep the text that was
//! written, so that a switch called `on`, `1` or `0x10` keeps its name.

use std::{collections::BTreeMap, rc::Rc};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::format::{
    diagnostic::{Diagnostic, Source, TextSpan},
    node::{DEPTH_MAX, Node, Style, Value},
};

/// Reads one document. An empty text is a null.
///
/// # Errors
/// The first violation of YAML's syntax: what follows it cannot be understood.
pub(crate) fn parse_yaml<'a>(source: &'a Source<'a>) -> Result<Rc<Node>, Box<Diagnostic>> {
    let end = end_of(source);
    let mut composer = Composer { source, end, open: Vec::new(), anchors: BTreeMap::new(), root: None };
    for event in Parser::new_from_str(source.text()) {
        let (event, span) = event.map_err(|error| Box::new(syntax_error(source, &error)))?;
        composer.handle_event(event, span)?;
    }
    Ok(composer.root.unwrap_or_else(|| {
        Rc::new(Node { place: TextSpan::START, value: Value::Scalar { text: String::new(), style: Style::Plain } })
    }))
}

/// A scalar that every YAML reader takes for this very string, in flow and block context, as key and as value.
pub(crate) fn quote(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+@".contains(c))
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { double_quote(text) }
}

/// The text in double quotes.
pub(crate) fn double_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() || c == '\u{feff}' => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Words that some YAML reader takes for a null or a truth value.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

struct Composer<'a> {
    source: &'a Source<'a>,
    /// Behind the last character.
    end: TextSpan,
    open: Vec<Open>,
    anchors: BTreeMap<usize, (Rc<Node>, usize)>,
    root: Option<Rc<Node>>,
}

/// A collection whose end has not come yet.
struct Open {
    place: TextSpan,
    anchor: usize,
    shape: Shape,
    /// How deep the deepest item so far is.
    depth: usize,
}

enum Shape {
    List(Vec<Rc<Node>>),
    Map { entries: Vec<(Rc<Node>, Rc<Node>)>, key: Option<Rc<Node>> },
}

impl Composer<'_> {
    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Result<(), Box<Diagnostic>> {
        let place = within(place_of(span), self.end);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let style = if style == ScalarStyle::Plain { Style::Plain } else { Style::Quoted };
                let node = Node { place, value: Value::Scalar { text: text.into_owned(), style } };
                self.complete(Rc::new(node), anchor, 0)?;
            }
            Event::Alias(anchor) => {
                // An alias to a collection that is still open would contain itself.
                let (target, depth) = self.anchors.get(&anchor).cloned().ok_or_else(|| {
                    Box::new(self.source.at(place).error("this alias refers to nothing that is complete"))
                })?;
                self.complete(target, 0, depth)?;
            }
            Event::SequenceStart(anchor, _) => self.begin(place, anchor, Shape::List(Vec::new()))?,
            Event::MappingStart(anchor, _) => {
                self.begin(place, anchor, Shape::Map { entries: Vec::new(), key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { place, anchor, shape, depth }) = self.open.pop() {
                    let value = match shape {
                        Shape::List(items) => Value::List(items),
                        Shape::Map { entries, .. } => Value::Map(entries),
                    };
                    self.complete(Rc::new(Node { place, value }), anchor, depth + 1)?;
                }
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                let error = self.source.at(TextSpan { width: 3, ..place }).error("a second document begins here");
                return Err(Box::new(error.with_help("keep one document a file")));
            }
            Event::DocumentStart(_) | Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => {}
        }
        Ok(())
    }

    fn begin(&mut self, place: TextSpan, anchor: usize, shape: Shape) -> Result<(), Box<Diagnostic>> {
        if self.open.len() == DEPTH_MAX {
            return Err(self.too_deep(place));
        }
        self.open.push(Open { place, anchor, shape, depth: 0 });
        Ok(())
    }

    fn complete(&mut self, node: Rc<Node>, anchor: usize, depth: usize) -> Result<(), Box<Diagnostic>> {
        if depth > DEPTH_MAX {
            return Err(self.too_deep(node.place));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), depth));
        }
        if let Some(open) = self.open.last_mut() {
            open.depth = open.depth.max(depth);
        }
        match self.open.last_mut().map(|open| &mut open.shape) {
            None => self.root = Some(node),
            Some(Shape::List(items)) => items.push(node),
            Some(Shape::Map { entries, key }) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
        Ok(())
    }

    fn too_deep(&self, place: TextSpan) -> Box<Diagnostic> {
        Box::new(self.source.at(place).error(format!("values are nested more than {DEPTH_MAX} deep")))
    }
}

fn place_of(span: Span) -> TextSpan {
    let (start, end) = (span.start, span.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    TextSpan { line: start.line(), column: start.col() + 1, width }
}

fn end_of(source: &Source<'_>) -> TextSpan {
    source.place(source.text().len(), source.text().len())
}

/// The place, or the end of the text where the parser counts on beyond it: what is missing at the end, a value or a key,
/// stands on no line.
fn within(place: TextSpan, end: TextSpan) -> TextSpan {
    if place.line > end.line { end } else { place }
}

fn syntax_error(source: &Source<'_>, error: &ScanError) -> Diagnostic {
    let mark = error.marker();
    let place = within(TextSpan { line: mark.line(), column: mark.col() + 1, width: 1 }, end_of(source));
    let diagnostic = source.at(place).error(format!("not YAML: {}", error.info()));
    let tabbed = (mark.line().saturating_sub(1)..=mark.line()).any(|line| {
        let content = source.line(line);
        content[..content.len() - content.trim_start().len()].contains('\t')
    });
    if tabbed { diagnostic.with_help("YAML allows no tab in indentation; use spaces") } else { diagnostic }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(node: &Node, found: &mut Vec<TextSpan>) {
        found.push(node.place);
        match &node.value {
            Value::Scalar { .. } => {}
            Value::List(items) => items.iter().for_each(|item| places(item, found)),
            Value::Map(entries) => entries.iter().for_each(|(key, value)| {
                places(key, found);
                places(value, found);
            }),
        }
    }

    #[test]
    fn what_is_missing_at_the_end_still_stands_on_a_line() {
        for text in ["?\n ", "? \n", "a:\n ", "a:\n\n", "- \n ", "-\n", "? a\n:\n ", "{a:\n", "a:\n  ?\n \n"] {
            let source = Source::new("f", text);
            let lines = text.split('\n').count();
            match parse_yaml(&source) {
                Ok(root) => {
                    let mut found = Vec::new();
                    places(&root, &mut found);
                    for place in found {
                        assert!((1..=lines).contains(&place.line), "{text:?}: line {} of {lines}", place.line);
                    }
                }
                Err(wrong) => assert!((1..=lines).contains(&wrong.line), "{text:?}: {wrong}"),
            }
        }
    }
}
