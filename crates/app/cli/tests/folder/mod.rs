//! A folder of a test's own, and the program in it.
#![allow(dead_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder that is gone with its value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A fresh folder.
    pub(crate) fn new(word: &str) -> Self {
        let path = std::env::temp_dir().join(format!("espalier-{word}-{}", std::process::id()));
        fs::create_dir(&path).expect("a fresh folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs the program with arguments that hold no blanks; exit code, standard output, standard error.
    pub(crate) fn run(&self, arguments: &str) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        let output = command.args(arguments.split(' ')).current_dir(&self.0).output().expect("the program runs");
        let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        (output.status.code().expect("it ends by itself"), out, error)
    }

    /// Runs the program, which must succeed; its standard output.
    pub(crate) fn succeed(&self, arguments: &str) -> String {
        let (code, out, error) = self.run(arguments);
        assert_eq!(code, 0, "espalier {arguments}:\n{out}{error}");
        out
    }

    /// A file's text.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

/// A table: its header, and each row's fields. What stands between quotes is one field, whatever commas it has.
pub(crate) fn table(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let fields = |line: &str| {
        let parts: Vec<&str> = line.split('"').collect();
        let hidden: Vec<String> = parts
            .iter()
            .enumerate()
            .map(|(at, part)| if at % 2 == 1 { part.replace(',', "\t") } else { (*part).to_owned() })
            .collect();
        hidden.concat().split(',').map(|field| field.replace('\t', ",")).collect::<Vec<String>>()
    };
    let mut lines = text.lines().map(fields);
    let header = lines.next().expect("a header");
    let rows: Vec<Vec<String>> = lines.collect();
    assert!(rows.iter().all(|row| row.len() == header.len()), "{header:?}");
    (header, rows)
}

/// A column as numbers.
pub(crate) fn column((header, rows): &(Vec<String>, Vec<Vec<String>>), name: &str) -> Vec<f64> {
    let at = header.iter().position(|known| known == name).unwrap_or_else(|| panic!("no column {name}"));
    rows.iter().map(|row| row[at].parse().unwrap_or_else(|_| panic!("{name}: {}", row[at]))).collect()
}
