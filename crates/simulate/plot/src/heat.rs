//! A fabric with its cables coloured by use: each cable is two lines, one a direction, seen as traffic keeps right.

use fabric::{ChannelId, Topology};

use super::{
    layout::lay_out,
    picture::{Anchor, Colour, Picture},
};

/// From one switch to the next, and around the fabric.
const STEP: f64 = 90.0;
const STEP_MIN: f64 = 26.0;
const MARGIN: f64 = 60.0;
/// Longest side of the fabric before steps get shorter.
const SIDE: f64 = 1_400.0;
const TITLE: f64 = 34.0;
const LEGEND: f64 = 44.0;
/// A cable longer than this many steps bends around what is between.
const STRAIGHT_MAX: f64 = 1.8;

/// How much each direction of each cable is used.
pub struct Heat {
    /// What the picture shows.
    pub title: String,
    /// What shares are of, for the legend: "of each direction's rate".
    pub of: &'static str,
    /// `channels[channel]`: a share, 0 to 1.
    pub channels: Vec<f64>,
    /// `hosts[host]`: the busier direction of the host's cable.
    pub hosts: Vec<f64>,
}

/// Draws a fabric. A switch's colour is that of its busiest cable to a host; `lattice[switch][dimension]` is where it stands, if
/// the fabric is a lattice.
pub fn draw_fabric(topology: &Topology, lattice: Option<&[Vec<usize>]>, heat: &Heat) -> Picture {
    let place = lay_out(topology, lattice).place;
    let fold = |pick: fn(&(f64, f64)) -> f64| {
        place.iter().map(pick).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
    };
    let ((left, right), (top, bottom)) = (fold(|at| at.0), fold(|at| at.1));
    let longest = (right - left).max(bottom - top).max(1.0);
    let step = (SIDE / longest).clamp(STEP_MIN, STEP);
    let width = ((right - left) * step + 2.0 * MARGIN).max(420.0);
    let shift = (width - (right - left) * step) / 2.0;
    let height = (bottom - top) * step + 2.0 * MARGIN + TITLE + LEGEND;
    let at = |switch: usize| (shift + (place[switch].0 - left) * step, TITLE + MARGIN + (place[switch].1 - top) * step);
    let mut picture = Picture::new(width, height);
    picture.text((width / 2.0, 24.0), 15.0, Anchor::Middle, heat.title.as_str());
    // The busiest come last and lie on top.
    let mut channels: Vec<ChannelId> = topology.channel_ids().collect();
    channels.sort_by(|a, b| heat.channels[a.index()].total_cmp(&heat.channels[b.index()]).then(a.cmp(b)));
    let radius = (step * 0.13).clamp(4.0, 12.0);
    let offsets = parallel(topology);
    for channel in channels {
        let (from, to) = (at(topology.tail(channel).index()), at(topology.head(channel).index()));
        let share = heat.channels[channel.index()];
        let hint = format!("{}: {:.1} %", topology.channel_label(channel), 100.0 * share);
        let side = 2.2 + 5.0 * offsets[channel.link().index()];
        let points = bent(from, to, side, step);
        picture.line(points, Colour::heat(share), if share > 0.0 { 2.8 } else { 1.6 }, &hint);
    }
    for switch in topology.switch_ids() {
        let hosts = topology.hosts_of(switch);
        let share = hosts.iter().map(|host| heat.hosts[host.index()]).fold(0.0, f64::max);
        let name = &topology.switch(switch).name;
        let colour = if hosts.is_empty() { Colour::WHITE } else { Colour::heat(share) };
        let hint = format!("{name}: {} hosts, their busiest cable {:.1} %", hosts.len(), 100.0 * share);
        picture.disc(at(switch.index()), radius, colour, &hint);
        if step >= 50.0 {
            let (x, y) = at(switch.index());
            picture.text((x + radius + 2.0, y + radius + 10.0), 10.0, Anchor::Start, name.as_str());
        }
    }
    draw_legend(&mut picture, height - LEGEND + 8.0, heat.of);
    picture
}

/// `number[link]` among the links that join the same two switches.
fn parallel(topology: &Topology) -> Vec<f64> {
    let mut seen = std::collections::BTreeMap::new();
    let ends = |link: &fabric::Link| {
        let (a, b) = (topology.port(link.a).switch, topology.port(link.b).switch);
        (a.min(b), a.max(b))
    };
    let number = |link: &fabric::Link| {
        let count = seen.entry(ends(link)).or_insert(0_u32);
        *count += 1;
        f64::from(*count - 1)
    };
    topology.links().iter().map(number).collect()
}

/// A channel's line: to the right of the straight one, and bent away from what is between if it is long.
fn bent(from: (f64, f64), to: (f64, f64), side: f64, step: f64) -> Vec<(f64, f64)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1e-6);
    // `y` runs down, so this is the right hand of whoever goes there.
    let normal = (-dy / length, dx / length);
    // Both directions of a cable bend to the same side of the picture.
    let same = if (dx, dy) > (0.0, 0.0) { -1.0 } else { 1.0 };
    let bulge = if length > STRAIGHT_MAX * step { same * (0.18 * step + 0.06 * length) } else { 0.0 };
    let pieces = if bulge == 0.0 { 1 } else { 16 };
    (0..=pieces)
        .map(|piece| {
            let share = f64::from(piece) / f64::from(pieces);
            let away = side + bulge * 4.0 * share * (1.0 - share);
            (from.0 + share * dx + away * normal.0, from.1 + share * dy + away * normal.1)
        })
        .collect()
}

fn draw_legend(picture: &mut Picture, y: f64, of: &str) {
    const BOXES: u32 = 40;
    for step in 0..BOXES {
        let share = f64::from(step) / f64::from(BOXES - 1);
        picture.fill((20.0 + 6.0 * f64::from(step), y), (6.2, 10.0), Colour::heat(share), "");
    }
    for (share, label) in [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")] {
        picture.text((20.0 + 6.0 * f64::from(BOXES) * share, y + 24.0), 11.0, Anchor::Middle, label);
    }
    let x = 20.0 + 6.0 * f64::from(BOXES) + 16.0;
    picture.text((x, y + 9.0), 11.0, Anchor::Start, of);
}

#[cfg(test)]
mod tests {
    use fabric::generate::{Kind, Options, generate};

    use super::*;

    #[test]
    fn every_channel_is_drawn_and_labelled() {
        let kind = Kind::parse("torus", &["4x4".to_owned()]).expect("a kind");
        let topology = generate(&kind, &Options::default()).expect("a topology");
        let channels = (0..topology.channel_count()).map(|index| index as f64 / 100.0).collect();
        let heat = Heat {
            title: "use".to_owned(),
            of: "of each direction's rate",
            channels,
            hosts: vec![0.5; topology.hosts().len()],
        };
        let svg = draw_fabric(&topology, None, &heat).to_svg();
        assert_eq!(svg.matches("<polyline").count(), topology.channel_count());
        assert_eq!(svg.matches("<circle").count(), topology.switches().len());
        for channel in topology.channel_ids() {
            let label = topology.channel_label(channel).replace('>', "&gt;");
            assert!(svg.contains(&format!("{label}: {:.1} %", channel.index() as f64)), "{label}");
        }
    }
}
