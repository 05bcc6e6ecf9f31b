//! Sweeps that are killed, sharded and merged: the same bytes whatever happened to them.

mod folder;

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use folder::{Folder, column, table};

const SWEEP: &str = "[[topology]]\nkind = \"torus\"\nsize = [\"3x3\", \"4x4\"]\n\n[[topology]]\nkind = \"mesh\"\n\
    size = \"2\"\n\n[plan]\nengine = [\"tree\", \"dor\"]\n\n[simulate]\nlevel = [\"flow\", \"packet\"]\n\
    pattern = [\"all-to-all\", \"bit-reversal\"]\nduration-ms = 2\n";

fn rows_in(folder: &Folder, name: &str) -> usize {
    let rows = fs::read_dir(folder.path().join(name).join("rows")).expect("a folder");
    rows.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "csv")))
        .count()
}

#[test]
fn any_order_gives_the_same_table() {
    let folder = Folder::new("sweep");
    folder.write("sweep.toml", SWEEP);
    assert_eq!(folder.succeed("sweep sweep.toml -o whole --jobs 1"), "24 rows: 24 made, 0 there before\n");
    assert_eq!(folder.succeed("sweep sweep.toml -o whole"), "24 rows: 0 made, 24 there before\n");
    folder.succeed("sweep merge whole -o whole.csv");
    let whole = folder.read("whole.csv");
    let rows = table(&whole);
    assert_eq!(rows.1.len(), 24);
    // With two hosts each is its own receiver in a bit reversal, which is a row and no failure.
    let status = rows.0.iter().position(|name| name == "status").expect("a column");
    assert_eq!(rows.1.iter().filter(|row| row[status] == "no traffic").count(), 4);
    assert_eq!(rows.1.iter().filter(|row| row[status] == "ok").count(), 20);

    for shard in 1..=3 {
        folder.succeed(&format!("sweep sweep.toml -o part{shard} --shard {shard}/3"));
        assert_eq!(rows_in(&folder, &format!("part{shard}")), 8);
    }
    folder.succeed("sweep merge part3 part1 part2 -o parts.csv");
    assert_eq!(folder.read("parts.csv"), whole);

    let (code, _, error) = folder.run("sweep merge part3 part1 -o parts.csv");
    assert!(code == 1 && error.contains("8 of 24 rows are missing, the first is torus 3x3"), "{error}");
    folder.succeed("sweep merge part3 part1 --partial -o some.csv");
    assert_eq!(table(&folder.read("some.csv")).1.len(), 16);

    folder.write("sweep.toml", &SWEEP.replace("4x4", "5x5"));
    folder.succeed("sweep sweep.toml -o other --shard 1/24");
    let (code, _, error) = folder.run("sweep merge whole other -o parts.csv");
    assert!(code == 2 && error.contains("whole and other are of different sweeps"), "{error}");

    folder.succeed("sweep plot whole.csv --x hosts --y goodput_mean_mbps --by engine --where level=flow -o plot.svg");
    assert!(folder.read("plot.svg").contains("goodput_mean_mbps by engine"));
    let (code, _, error) = folder.run("sweep plot whole.csv --x size --y goodput_mean_mbps -o plot.svg");
    assert!(code == 2 && error.contains("whole.csv:1: there is no column \"size\"; there are topology"), "{error}");
}

#[test]
fn several_paths_and_how_pairs_spread_over_them_can_be_varied() {
    let folder = Folder::new("spread");
    folder.write(
        "sweep.toml",
        "[[topology]]\nkind = \"torus\"\nsize = \"4x4\"\n[plan]\ntagging = \"source\"\nflow-control = \"none\"\npaths = [1, 8]\n\
         [simulate]\nlevel = [\"flow\", \"packet\"]\npattern = \"transpose\"\nspread = [\"one\", \"ideal\", \"packet\"]\nduration-ms = 2\n",
    );
    folder.succeed("sweep sweep.toml -o rows");
    folder.succeed("sweep merge rows -o rows.csv");
    let (names, rows) = table(&folder.read("rows.csv"));
    let of = |name: &str| names.iter().position(|column| column == name).expect("a column");
    let found = |wanted: [&str; 3]| {
        let is_it = |row: &&Vec<String>| {
            ["paths", "level", "spread"].into_iter().zip(wanted).all(|(name, value)| row[of(name)] == value)
        };
        rows.iter().find(is_it).expect("a row")
    };
    let rate = |wanted| found(wanted)[of("goodput_mean_mbps")].parse::<f64>().expect("a rate");
    // Four VLANs and more to a pair carry a transpose that one path carries badly.
    assert!(rate(["8", "flow", "ideal"]) > 1.5 * rate(["1", "flow", "one"]));
    assert!(rate(["8", "packet", "packet"]) > 1.5 * rate(["1", "packet", "one"]));
    for (wanted, why) in [
        (["1", "flow", "ideal"], "one path a pair"),
        (["8", "flow", "packet"], "is about frames"),
        (["8", "packet", "ideal"], "is about rates"),
    ] {
        let row = found(wanted);
        assert!(row[of("status")] == "no traffic" && row[of("note")].contains(why), "{row:?}");
    }
}

#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let folder = Folder::new("killed");
    let seeds: Vec<String> = (1..=60).map(|seed| seed.to_string()).collect();
    let sweep = format!(
        "[[topology]]\nkind = \"torus\"\nsize = \"4x4\"\n[simulate]\nduration-ms = 3\npattern = \"permutation\"\n\
         seed = [{}]\n",
        seeds.join(", ")
    );
    folder.write("sweep.toml", &sweep);
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
    command.args(["sweep", "sweep.toml", "-o", "rows"]).current_dir(folder.path()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    while !folder.path().join("rows/rows").exists() || rows_in(&folder, "rows") < 3 {
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it dies");
    child.wait().expect("it is dead");
    let before = rows_in(&folder, "rows");
    folder.succeed("sweep sweep.toml -o rows");
    folder.succeed("sweep merge rows -o resumed.csv");
    folder.succeed("sweep sweep.toml -o fresh");
    folder.succeed("sweep merge fresh -o fresh.csv");
    assert_eq!(folder.read("resumed.csv"), folder.read("fresh.csv"));
    let goodput = column(&table(&folder.read("fresh.csv")), "goodput_mean_mbps");
    assert!(before >= 3 && goodput.len() == 60 && goodput.iter().all(|mbps| *mbps > 10.0), "{before}, {goodput:?}");
}

#[test]
fn a_mistake_names_file_line_and_the_way_out() {
    let folder = Folder::new("mistake");
    folder.write("sweep.toml", &SWEEP.replace("\"dor\"", "\"door\""));
    let (code, _, error) = folder.run("sweep sweep.toml -o rows");
    assert_eq!(code, 2);
    assert!(error.starts_with("espalier: sweep.toml:10: engine: \"door\" is none of auto, tree"), "{error}");
    assert!(!folder.path().join("rows").exists());
}
