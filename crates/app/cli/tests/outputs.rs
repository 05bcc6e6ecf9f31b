//! What `simulate` writes, read by others: tshark, an XML parser, and sums that must agree from file to file.

mod folder;

use std::{
    collections::BTreeMap,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use folder::{Folder, column, table};

/// A plan of a ring of four with two hosts a switch, as `ring.json`.
fn planned(word: &str, options: &str) -> Folder {
    let folder = Folder::new(word);
    folder.succeed("generate torus 4 --hosts-per-switch 2 -o ring.yaml");
    folder.succeed(&format!("plan ring.yaml{options} -o ring.json"));
    folder
}

#[test]
fn tables_agree_with_each_other_and_with_the_json() {
    let folder = planned("tables", "");
    let out = folder.succeed(
        "simulate ring.json --pattern all-to-all --duration-ms 20 --csv flows.csv --channels channels.csv --series \
         series.csv --goodput goodput.csv --sample-ms 1 --json",
    );
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let tables = ["flows.csv", "channels.csv", "series.csv", "goodput.csv"].map(|name| table(&folder.read(name)));
    let [flows, channels, series, goodput] = &tables;

    assert_eq!((flows.1.len(), json["flows"].as_array().expect("flows").len()), (56, 56));
    let delivered: f64 = column(flows, "delivered_bytes").iter().sum();
    let of_json = json["flows"].as_array().expect("flows").iter().map(|flow| flow["delivered_bytes"].as_f64());
    assert_eq!(delivered, of_json.map(|bytes| bytes.expect("a number")).sum::<f64>());

    // What each interval says was received, added up, is what flows delivered.
    let seconds: Vec<f64> = column(goodput, "end_us")
        .iter()
        .zip(column(goodput, "start_us"))
        .map(|(end, start)| (end - start) / 1e6)
        .collect();
    let received: f64 =
        column(goodput, "total_bps").iter().zip(&seconds).map(|(rate, seconds)| rate / 8.0 * seconds).sum();
    assert!((received - delivered).abs() < 100.0, "{received} bytes by intervals, {delivered} by flows");
    for row in 0..goodput.1.len() {
        let at = |name: &str| column(goodput, name)[row];
        assert!(at("slowest_host_bps") <= at("median_host_bps") && at("median_host_bps") <= at("fastest_host_bps"));
    }

    // The same for each cable's use: 8 channels between switches, 8 cables of hosts, both directions of each.
    assert_eq!((channels.1.len(), series.1.len()), (24, 24 * 20));
    let key = |row: &Vec<String>, at: usize| format!("{} -> {}", row[at], row[at + 1]);
    let mut used: BTreeMap<String, f64> = BTreeMap::new();
    for (row, share) in series.1.iter().zip(column(series, "utilisation")) {
        // A frame may start by as much later than its port was free as a bit needs along the cable.
        assert!((0.0..=1.001).contains(&share), "{row:?}");
        *used.entry(key(row, 2)).or_default() += share / 20.0;
    }
    for (row, share) in channels.1.iter().zip(column(channels, "utilisation")) {
        let by_interval = used[&key(row, 0)];
        assert!((by_interval - share).abs() < 0.001, "{}: {by_interval} by intervals, {share} in all", key(row, 0));
    }
    let mut cables = json["channels"].as_array().expect("channels").clone();
    cables.extend(json["host_cables"].as_array().expect("host_cables").iter().cloned());
    for (row, cable) in channels.1.iter().zip(&cables) {
        assert_eq!(cable["channel"].as_str(), Some(key(row, 0).as_str()));
        assert_eq!(cable["frames"].to_string(), row[3]);
    }
}

#[test]
fn samples_change_nothing() {
    let folder = planned("unchanged", "");
    let command = "simulate ring.json --pattern incast --duration-ms 5 --flow-control all";
    let plain = folder.succeed(command);
    let sampled = folder.succeed(&format!(
        "{command} --series series.csv --sample-ms 0.1 --plot plot.svg --pcap s0:p1=port.pcap --heat-map heat.svg"
    ));
    assert_eq!(plain, sampled);
}

#[test]
fn pictures_are_what_their_names_say() {
    let folder = planned("pictures", "");
    folder.succeed("simulate ring.json --duration-ms 5 --heat-map heat.svg --plot plot.svg");
    folder.succeed("simulate ring.json --duration-ms 5 --heat-map heat.png --plot plot.png");
    folder.succeed("simulate ring.json --level flow --heat-map rates.svg --channels rates.csv");
    for name in ["heat.svg", "plot.svg", "rates.svg"] {
        let text = folder.read(name);
        let mut reader = quick_xml::Reader::from_str(&text);
        reader.config_mut().check_end_names = true;
        let mut lines = 0;
        loop {
            match reader.read_event() {
                Ok(quick_xml::events::Event::Eof) => break,
                Ok(quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag)) => {
                    lines += usize::from(tag.name().as_ref() == b"polyline");
                }
                Ok(_) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        assert!(lines >= 3, "{name} has {lines} lines");
    }
    for name in ["heat.png", "plot.png"] {
        let bytes = std::fs::read(folder.path().join(name)).expect("a file");
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n", "{name}");
        assert_eq!(&bytes[bytes.len() - 8..bytes.len() - 4], b"IEND", "{name}");
    }
    let (code, _, error) = folder.run("simulate ring.json --plot plot.gif");
    assert_eq!((code, error.as_str()), (2, "espalier: plot.gif: pictures are .svg or .png; name one of them\n"));
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let folder = planned("refused", "");
    for (options, expected) in [
        ("--level flow --pcap s0:p1=a.pcap", "--pcap needs frames, and the flow level has none: use --level packet"),
        ("--level flow --series a.csv", "--series needs frames"),
        ("--pcap s9:p1=a.pcap", "--pcap: the plan has no switch \"s9\""),
        ("--pcap s0:g1=a.pcap", "--pcap: s0 has no port \"g1\"; it has p1, p2"),
        ("--pcap s0:p1", "name a switch, its port and a file, as in s0-0:p2=port.pcap"),
        ("--sample-ms 1", "--sample-ms needs --series, --goodput or --plot"),
        ("--series a.csv --sample-ms 0", "it must be a number from 0.000000001"),
        ("--series a.csv --sample-ms 0.000001", "at most a million samples fit into the time"),
    ] {
        let (code, _, error) = folder.run(&format!("simulate ring.json {options}"));
        assert!(code == 2 && error.contains(expected), "{options}: {code}, {error}");
    }
}

/// Fields of every frame of a capture, as tshark reads them; none if it is not installed.
fn tshark(folder: &Folder, file: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.current_dir(folder.path()).args(["-r", file, "-T", "fields", "-E", "occurrence=a"]);
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = match command.stderr(Stdio::piped()).output() {
        Ok(output) => output,
        Err(_) => {
            eprintln!("SKIPPED: tshark is not installed; apt-get install tshark");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// Frames that passed a port, by the table of cables: into the switch, and out of it.
fn passed(folder: &Folder, port: &str) -> (f64, f64) {
    let channels = table(&folder.read("channels.csv"));
    let frames = column(&channels, "frames");
    let count = |at: usize| {
        channels.1.iter().zip(&frames).find(|(row, _)| row[at] == port).map(|(_, frames)| *frames).expect("a cable")
    };
    (count(1), count(0))
}

#[test]
fn tshark_reads_every_transport() {
    let folder = planned("pcap", " --flow-control pause");
    for (transport, protocol) in [("udp", "udp"), ("cubic", "tcp"), ("reno", "tcp"), ("go-back-n", "infiniband")] {
        folder.succeed(&format!(
            "simulate ring.json --pattern all-to-all --transport {transport} --duration-ms 4 --channels channels.csv \
             --pcap s0:p1=port.pcap --pcap s1:p3=host.pcap"
        ));
        for (file, port) in [("port.pcap", "s0:p1"), ("host.pcap", "s1:p3")] {
            let fields = [
                "frame.time_epoch",
                "eth.dst",
                "vlan.id",
                "ip.checksum.status",
                "tcp.checksum.status",
                "_ws.malformed",
                "frame.protocols",
                "frame.len",
                "ip.len",
                "macc.opcode",
            ];
            let Some(frames) = tshark(&folder, file, &fields) else { return };
            let (mut last, mut data) = (0.0, 0.0);
            for frame in &frames {
                let [time, eth, vlan, ip_sum, tcp_sum, malformed, protocols, length, ip_length, control] =
                    frame.as_slice()
                else {
                    panic!("{frame:?}")
                };
                let time: f64 = time.parse().expect("a time");
                assert!(time >= last && malformed.is_empty(), "{transport}: {frame:?}");
                last = time;
                if eth == "01:80:c2:00:00:01" {
                    assert_eq!(control, "0x0001", "{frame:?}");
                    continue;
                }
                data += 1.0;
                // 1 is good, 0 bad, 2 unverified: tshark does not judge a segment that it does not have whole.
                assert!(ip_sum == "1" && tcp_sum != "0", "{transport}: {frame:?}");
                assert!(protocols.contains(protocol), "{transport}: {frame:?}");
                assert_eq!(vlan.is_empty(), port == "s1:p3", "tags are between switches alone: {frame:?}");
                let header = if vlan.is_empty() { 14 } else { 18 };
                let (length, ip_length): (i64, i64) =
                    (length.parse().expect("a length"), ip_length.parse().expect("one"));
                let beyond = length - header - ip_length;
                assert!((0..=if transport == "go-back-n" { 8 } else { 0 }).contains(&beyond), "{transport}: {frame:?}");
            }
            // A frame that is still on the cable at the end counts for the port, and has not passed yet.
            let (into, out) = passed(&folder, port);
            assert!((into + out - data).abs() <= 2.0, "{transport}, {port}: {into} in, {out} out, {data} captured");
            assert!(data > 20.0, "{transport}, {port}: {data} frames show nothing");
        }
    }
}

#[test]
fn tshark_reads_pause_and_priority_flow_control() {
    for (policy, opcode) in [("pause", "0x0001"), ("pfc=2", "0x0101")] {
        let folder = planned(&format!("pause-{}", &policy[..3]), &format!(" --flow-control {policy}"));
        folder.succeed("simulate ring.json --pattern incast --duration-ms 10 --pcap s0:p1=a.pcap --pcap s0:p2=b.pcap");
        let fields = ["eth.dst", "macc.opcode", "_ws.malformed", "macc.pause_time"];
        let Some(mut frames) = tshark(&folder, "a.pcap", &fields) else { return };
        frames.extend(tshark(&folder, "b.pcap", &fields).expect("it is installed"));
        let pauses: Vec<&Vec<String>> = frames.iter().filter(|frame| frame[0] == "01:80:c2:00:00:01").collect();
        assert!(!pauses.is_empty(), "{policy}: the test must press hard enough");
        assert!(pauses.iter().all(|frame| frame[1] == opcode && frame[2].is_empty()), "{policy}: {:?}", pauses[0]);
    }
}

/// Starts the program, presses Ctrl-C as soon as it catches that, and waits for its end.
fn interrupted(folder: &Folder, arguments: &str) -> (Output, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
    command.args(arguments.split(' '));
    let child = command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program runs");
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
    };
    while !catches() {
        thread::sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, error)
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    let folder = planned("interrupt", "");
    let arguments = "--json simulate ring.json --duration-ms 10000000 --csv flows.csv";
    let (output, error) = interrupted(&folder, arguments);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("stopped by Ctrl-C after"), "{error}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["interrupted"], true);
    assert!(json["elapsed_ps"].as_u64() < json["duration_ps"].as_u64());
    assert_eq!(table(&folder.read("flows.csv")).1.len(), 56);
}

/// The first Ctrl-C ends a program at the flow level too, which then says how far it came.
#[test]
fn ctrl_c_ends_a_program_at_the_flow_level() {
    let folder = planned("interrupt-flow", "");
    let arguments = "--json simulate ring.json --random 3000000 --level flow --csv messages.csv";
    let (output, error) = interrupted(&folder, arguments);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("stopped by Ctrl-C after"), "{error}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["cut_short"], true);
    let arrived = json["arrived"]["messages"].as_u64().expect("a number");
    assert!(arrived < 3_000_000, "{arrived} messages arrived");
    assert_eq!(table(&folder.read("messages.csv")).1.len() as u64, arrived);
}
