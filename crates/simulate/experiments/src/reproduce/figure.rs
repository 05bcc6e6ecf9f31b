//! The tables and figures that can be reproduced.

/// A table or figure of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// \[Otsuka\] Table 2.
    Table2,
    /// \[Otsuka\] Table 3.
    Table3,
    /// \[Otsuka\] Fig. 4.
    Fig4,
    /// \[Otsuka\] Fig. 5.
    Fig5,
    /// \[Otsuka\] Fig. 7.
    Fig7,
    /// \[Otsuka\] Fig. 8.
    Fig8,
    /// Fig. 5 of the Japanese version of \[Otsuka\].
    JaFig5,
    /// Fig. 6 of the Japanese version of \[Otsuka\].
    JaFig6,
    /// \[Eicker\], the prototype.
    Eicker144,
    /// \[Eicker\], the forecast.
    Eicker528,
    /// \[Miura\] Fig. 5.
    MiuraFig5,
    /// \[Miura\] Table 2.
    MiuraTable2,
    /// \[Miura\] Fig. 6.
    MiuraFig6,
    /// \[Miura\] Fig. 7.
    MiuraFig7,
}

/// What is known of a figure.
struct Entry {
    figure: Figure,
    name: &'static str,
    description: &'static str,
}

const fn entry(figure: Figure, name: &'static str, description: &'static str) -> Entry {
    Entry { figure, name, description }
}

/// Every figure, in the order of the enum.
const FIGURES: [Entry; 14] = [
    entry(Figure::Table2, "table2", "deadlocks by PAUSE in [Otsuka], simulated on reconstructed patterns"),
    entry(Figure::Table3, "table3", "the evaluated topologies of [Otsuka], from real plans"),
    entry(Figure::Fig4, "fig4", "latency and bandwidth over the switches between two hosts, [Otsuka]"),
    entry(Figure::Fig5, "fig5", "eight pairs over one cable with and without PAUSE, [Otsuka]"),
    entry(Figure::Fig7, "fig7", "three traffic patterns on the topologies of [Otsuka], frame by frame and as rates"),
    entry(Figure::Fig8, "fig8", "NAS benchmarks on the topologies of [Otsuka], from real traces"),
    entry(Figure::JaFig5, "ja-fig5", "two traffic patterns, and what the Japanese version of [Otsuka] says of them"),
    entry(Figure::JaFig6, "ja-fig6", "NAS benchmarks, and what the Japanese version of [Otsuka] says of them"),
    entry(Figure::Eicker144, "eicker144", "144 nodes on a Clos network of ten switches, [Eicker]"),
    entry(Figure::Eicker528, "eicker528", "the forecast for 528 ports, [Eicker]"),
    entry(Figure::MiuraFig5, "miura-fig5", "latency of hosts that tag, [Miura]"),
    entry(Figure::MiuraTable2, "miura-table2", "throughput of hosts that tag, [Miura]"),
    entry(Figure::MiuraFig6, "miura-fig6", "bisection bandwidth over the number of cables, [Miura]"),
    entry(Figure::MiuraFig7, "miura-fig7", "NAS benchmarks on two switches, [Miura]"),
];

impl Figure {
    /// Every figure, each once.
    pub fn all() -> impl Iterator<Item = Self> {
        FIGURES.iter().map(|entry| entry.figure)
    }

    /// The figure of this name.
    pub fn named(name: &str) -> Option<Self> {
        FIGURES.iter().find(|entry| entry.name == name).map(|entry| entry.figure)
    }

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        FIGURES[self as usize].name
    }

    /// What it shows, in one line.
    pub fn description(self) -> &'static str {
        FIGURES[self as usize].description
    }

    /// Whether the lab reproduces it; the simulator reproduces every figure.
    pub fn is_in_lab(self) -> bool {
        matches!(self, Self::Fig7 | Self::Fig8 | Self::MiuraFig6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_by_its_name() {
        for (at, figure) in Figure::all().enumerate() {
            assert_eq!(figure as usize, at, "{figure:?} is out of order");
            assert_eq!(Figure::named(figure.name()), Some(figure));
        }
        assert_eq!(Figure::all().last(), Some(Figure::MiuraFig7), "the last of the enum is the last of the table");
        assert_eq!(Figure::named("fig6"), None);
    }
}
