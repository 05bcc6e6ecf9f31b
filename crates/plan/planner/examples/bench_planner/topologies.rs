//! Topologies by name.

use fabric::{
    DEFAULT_RATE_BPS, Mac, SwitchSpec, Topology, TopologyBuilder,
    generate::{Kind, Options, generate},
    rng::Rng,
};

/// Those that a run without names is about.
pub(crate) const KNOWN: [&str; 13] = [
    "mesh 8x8",
    "torus 4x4",
    "torus 4x4x4",
    "torus 8x8",
    "torus 8x8x8",
    "torus 12x12x12",
    "fat-tree k=16",
    "hyperx 16x16",
    "dragonfly a=8,h=4",
    "random-regular n=256,d=8",
    "random-regular n=256,d=8 x4",
    "random-regular n=1024,d=12",
    "torus 8x8 less 3,1",
];

/// `KIND SIZE [xHOSTS] [less CABLES,SWITCHES]`; what is random is drawn by `seed`.
pub(crate) fn topology(name: &str, seed: u64) -> Result<Topology, String> {
    let (whole, less) = name.split_once(" less ").map_or((name, None), |(whole, less)| (whole, Some(less)));
    let words: Vec<&str> = whole.split_whitespace().collect();
    let (kind, size, hosts) = match words[..] {
        [kind, size] => (kind, size, None),
        [kind, size, hosts] => (kind, size, hosts.strip_prefix('x')),
        _ => return Err(format!("{name:?} is no KIND SIZE [xHOSTS] [less CABLES,SWITCHES]")),
    };
    let hosts_per_switch = hosts.map(str::parse).transpose().map_err(|_| format!("{hosts:?} is no number"))?;
    let whole = match kind {
        "grown" => grown(pair(size)?, seed),
        _ => {
            let size = if kind == "random-regular" && !size.contains("seed") {
                format!("{size},seed={seed}")
            } else {
                size.into()
            };
            let kind = Kind::parse(kind, &[size]).map_err(|error| error.to_string())?;
            let options = Options { hosts_per_switch, ..Options::default() };
            generate(&kind, &options).map_err(|error| error.to_string())?
        }
    };
    match less {
        None => Ok(whole),
        Some(less) => (0..100)
            .find_map(|attempt| damaged(&whole, pair(less).ok()?, seed + 1000 * attempt))
            .ok_or_else(|| format!("{name} falls apart")),
    }
}

fn pair(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once(',').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text:?} is no pair of numbers"))
}

/// The topology without some cables and switches; none if the rest is not connected.
fn damaged(whole: &Topology, (cables, switches): (usize, usize), seed: u64) -> Option<Topology> {
    let mut rng = Rng::new(seed);
    let mut left: Vec<usize> = (0..whole.switches().len()).collect();
    for _ in 0..switches {
        left.remove(rng.below(left.len()));
    }
    let ends = |link: &fabric::Link| [link.a, link.b].map(|port| whole.port(port).switch.index());
    let mut links: Vec<[usize; 2]> = whole.links().iter().map(ends).collect();
    links.retain(|ends| ends.iter().all(|end| left.contains(end)));
    for _ in 0..cables {
        links.remove(rng.below(links.len()));
    }
    let hosts: Vec<(usize, usize)> =
        whole.switch_ids().map(|switch| (switch.index(), whole.hosts_of(switch).len())).collect();
    let hosts: Vec<(usize, usize)> = hosts.into_iter().filter(|(switch, _)| left.contains(switch)).collect();
    wired(&hosts, &links)
}

/// A network as it grows: every switch that came got one to so many cables to those that were there.
fn grown((switches, cables_max): (usize, usize), seed: u64) -> Topology {
    let mut rng = Rng::new(seed);
    let links: Vec<[usize; 2]> = (1..switches)
        .flat_map(|switch| (0..1 + rng.below(cables_max)).map(|_| [rng.below(switch), switch]).collect::<Vec<_>>())
        .collect();
    let hosts: Vec<(usize, usize)> = (0..switches).map(|switch| (switch, 1 + rng.below(3))).collect();
    wired(&hosts, &links).expect("every switch is cabled to an earlier one")
}

/// Switches with so many hosts each, and cables between them.
fn wired(hosts: &[(usize, usize)], links: &[[usize; 2]]) -> Option<Topology> {
    let mut builder = TopologyBuilder::new();
    let mut ids = std::collections::BTreeMap::new();
    for &(switch, _) in hosts {
        ids.insert(switch, builder.add_switch(&format!("s{switch}"), SwitchSpec::default()).expect("names differ"));
    }
    let mut ports = 0;
    let mut port = |builder: &mut TopologyBuilder, switch: usize| {
        ports += 1;
        builder.add_port(ids[&switch], &format!("p{ports}")).expect("names differ")
    };
    for &ends in links {
        let [a, b] = ends.map(|end| port(&mut builder, end));
        builder.add_link(a, b, DEFAULT_RATE_BPS).expect("free ports");
    }
    let mut number = 0;
    for &(switch, count) in hosts {
        for _ in 0..count {
            number += 1;
            let at = port(&mut builder, switch);
            builder
                .add_host(&format!("h{number}"), Mac::local(number), at, DEFAULT_RATE_BPS, None)
                .expect("a free port");
        }
    }
    builder.finish().ok()
}
