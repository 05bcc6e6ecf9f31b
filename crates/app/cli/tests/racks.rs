//! Racks as people have them (`testdata/racks`): planned, judged, rendered for their switches and read back.

mod folder;

use std::{fs, path::Path};

use folder::Folder;

/// The racks by name, each with its text and the options that its second line asks for.
fn racks() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/racks");
    let mut racks = Vec::new();
    for entry in fs::read_dir(&folder).expect("the racks") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("text");
        let options = text.lines().nth(1).and_then(|line| line.strip_prefix("# plan:")).unwrap_or_default().to_owned();
        racks.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), text, options));
    }
    racks.sort();
    racks
}

#[test]
fn racks_are_planned_judged_rendered_and_read_back() {
    let (folder, racks) = (Folder::new("racks"), racks());
    assert_eq!(racks.len(), 10);
    for (name, text, options) in &racks {
        fs::write(folder.path().join("rack.yaml"), text).expect("room for a file");
        let planned = folder.succeed(&format!("plan rack.yaml -o {name}.json{options}"));
        println!("{name}: {}", planned.lines().next().unwrap_or_default());
        for report in [
            planned,
            folder.succeed(&format!("check {name}.json")),
            folder.succeed(&format!("render {name}.json -o {name}")),
            folder.succeed(&format!("check {name}.json --rendered {name}")),
        ] {
            assert!(!report.contains("fatal,") || report.contains("0 fatal, 0 warnings"), "{name}:\n{report}");
        }
    }
}
