//! Kinds of networks and the field's notation for them: `torus 8x8x8`, `fat-tree 2,4,2`, `dragonfly a=8,h=4`.
//!
//! Sizes are lists, written with `x` or commas between (`4x4`), or settings (`a=8,h=4`); spaces do as well, since a shell
//! hands the words over one by one. A [`Kind`] is written back as it is read.

use std::{collections::BTreeMap, fmt};

use super::GenerateError;

/// Most dimensions of a lattice: as many as give [`SWITCHES_MAX`](crate::SWITCHES_MAX) switches with two in each.
const DIMENSIONS_MAX: usize = 14;
/// Most levels of a tree.
const LEVELS_MAX: u32 = 14;

/// A network: its family and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Switches at lattice points, cabled to their neighbours along each dimension; the switches in each dimension.
    Mesh(Vec<usize>),
    /// A mesh whose lines are closed into rings.
    Torus(Vec<usize>),
    /// A mesh of two in each of so many dimensions.
    Hypercube(u32),
    /// Lattice points, every two of a line cabled.
    HyperX(Vec<usize>),
    /// Lattice points, and a further switch for each line to which its points are cabled.
    HyperCrossbar(Vec<usize>),
    /// The tree within a mesh of \[Otsuka\] Table 3.
    MTree(Vec<usize>),
    /// The fat tree (p, q, r) of \[Otsuka\] Fig. 6(a).
    FatTree {
        /// Links up, and hosts of a leaf.
        p: usize,
        /// Links down; a multiple of `p`.
        q: usize,
        /// Levels above the leaves.
        r: u32,
    },
    /// The three-level fat tree of switches that all have `k` ports.
    KaryFatTree {
        /// Ports of a switch; even.
        k: usize,
    },
    /// Leaves, each cabled to every spine.
    Clos {
        /// Switches with hosts.
        leaves: usize,
        /// Switches without.
        spines: usize,
    },
    /// Fully cabled groups, and cables between every two groups.
    Dragonfly {
        /// Hosts of a router; none is half of `a`.
        p: Option<usize>,
        /// Routers in a group.
        a: usize,
        /// Global links of a router.
        h: usize,
        /// Groups; none is `a·h + 1`, the most there can be.
        groups: Option<usize>,
    },
    /// A random connected graph in which every switch has the same number of links.
    RandomRegular {
        /// Switches.
        switches: usize,
        /// Links of each.
        degree: usize,
        /// What the links are drawn by.
        seed: u64,
    },
    /// A plain tree with hosts at its leaves.
    Tree {
        /// Switches under each switch.
        fanout: usize,
        /// Levels of switches, the root's included.
        depth: u32,
    },
}

/// What help texts say about a family of networks.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The word for it.
    pub word: &'static str,
    /// How its sizes are written.
    pub sizes: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// A whole example, as the command line takes it.
    pub example: &'static str,
}

impl Family {
    /// Every family, in the order in which help texts list them. A word stands twice if its sizes can be written in two ways.
    pub const ALL: &'static [Self] = &[
        family("mesh", "N1xN2x…", "neighbours along every dimension", "mesh 4x4"),
        family("torus", "N1xN2x…", "a mesh whose lines are rings", "torus 8x8x8"),
        family("hypercube", "DIMENSIONS", "a mesh of two in every dimension", "hypercube 6"),
        family("hyperx", "N1xN2x…", "every two switches of a line cabled", "hyperx 16x16"),
        family("hyper-crossbar", "N1xN2x…", "one more switch for every line", "hyper-crossbar 4x4x4"),
        family("m-tree", "N1xN2x…", "the tree within a mesh of [Otsuka] Table 3", "m-tree 4x4"),
        family("fat-tree", "P,Q,R", "P links up, Q links down, R levels over the leaves", "fat-tree 2,4,2"),
        family("fat-tree", "k=K", "three levels of switches with K ports", "fat-tree k=16"),
        family("clos", "LEAVESxSPINES", "every leaf cabled to every spine", "clos 4x4"),
        family("dragonfly", "a=A,h=H[,p=P][,g=G]", "G groups of A routers with H global links", "dragonfly a=8,h=4"),
        family(
            "random-regular",
            "n=N,d=D[,seed=S]",
            "N switches with D random links each",
            "random-regular n=256,d=8,seed=1",
        ),
        family("tree", "fanout=F,depth=D", "a plain tree, D levels of switches", "tree fanout=4,depth=3"),
    ];

    /// Every word once, with commas between.
    pub(super) fn words() -> String {
        let mut words: Vec<&str> = Self::ALL.iter().map(|family| family.word).collect();
        words.dedup();
        words.join(", ")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word)
    }
}

const fn family(word: &'static str, sizes: &'static str, about: &'static str, example: &'static str) -> Family {
    Family { word, sizes, about, example }
}

impl Kind {
    /// Reads a kind and its sizes as the command line has them.
    ///
    /// # Errors
    /// [`GenerateError`] if the word or the sizes do not read, or there is no such network.
    pub fn parse(word: &str, sizes: &[String]) -> Result<Self, GenerateError> {
        let given = sizes.join(" ");
        let has_settings = given.contains('=');
        let fits = |family: &&'static Family| family.word == word && family.sizes.contains('=') == has_settings;
        let family = (Family::ALL.iter().find(fits))
            .or_else(|| Family::ALL.iter().find(|family| family.word == word))
            .ok_or_else(|| GenerateError::UnknownKind { word: word.chars().take(40).collect() })?;
        let kind = if has_settings {
            settings(&given).and_then(|mut settings| Self::of_settings(word, &mut settings))
        } else {
            list(&given).and_then(|sizes| Self::of_list(word, sizes))
        };
        let kind = kind.ok_or_else(|| GenerateError::BadSizes { family, given: given.chars().take(80).collect() })?;
        kind.validate()?;
        Ok(kind)
    }

    fn of_list(word: &str, sizes: Vec<usize>) -> Option<Self> {
        match (word, sizes.as_slice()) {
            ("mesh", _) => Some(Self::Mesh(sizes)),
            ("torus", _) => Some(Self::Torus(sizes)),
            ("hyperx", _) => Some(Self::HyperX(sizes)),
            ("hyper-crossbar", _) => Some(Self::HyperCrossbar(sizes)),
            ("m-tree", _) => Some(Self::MTree(sizes)),
            ("hypercube", &[dimensions]) => Some(Self::Hypercube(u32::try_from(dimensions).ok()?)),
            ("fat-tree", &[p, q, r]) => Some(Self::FatTree { p, q, r: u32::try_from(r).ok()? }),
            ("clos", &[leaves, spines]) => Some(Self::Clos { leaves, spines }),
            _ => None,
        }
    }

    fn of_settings(word: &str, settings: &mut BTreeMap<&str, u64>) -> Option<Self> {
        let mut take = |key| settings.remove(key).map(|value| usize::try_from(value).unwrap_or(usize::MAX));
        let kind = match word {
            "fat-tree" => Self::KaryFatTree { k: take("k")? },
            "dragonfly" => Self::Dragonfly { p: take("p"), a: take("a")?, h: take("h")?, groups: take("g") },
            "random-regular" => {
                let (switches, degree) = (take("n")?, take("d")?);
                Self::RandomRegular { switches, degree, seed: settings.remove("seed").unwrap_or(1) }
            }
            "tree" => Self::Tree { fanout: take("fanout")?, depth: u32::try_from(take("depth")?).ok()? },
            _ => return None,
        };
        settings.is_empty().then_some(kind)
    }

    /// Refuses sizes for which there is no network, though not large ones.
    ///
    /// # Errors
    /// [`GenerateError::Impossible`], naming the rule.
    pub(super) fn validate(&self) -> Result<(), GenerateError> {
        let lattice = |sizes: &[usize], least: usize| {
            require((1..=DIMENSIONS_MAX).contains(&sizes.len()), || {
                format!("there are 1 to {DIMENSIONS_MAX} dimensions")
            })?;
            require(sizes.iter().all(|&size| size >= least), || {
                format!("every dimension has at least {least} switches")
            })
        };
        let at_least_one =
            |sizes: &[usize]| require(sizes.iter().all(|&size| size >= 1), || "every size is at least 1".to_owned());
        let levels =
            |levels: u32| require((1..=LEVELS_MAX).contains(&levels), || format!("there are 1 to {LEVELS_MAX} levels"));
        let holds = match self {
            Self::Mesh(sizes) | Self::Torus(sizes) | Self::HyperX(sizes) | Self::MTree(sizes) => lattice(sizes, 1),
            Self::HyperCrossbar(sizes) => lattice(sizes, 2),
            Self::Hypercube(dimensions) => require((1..=DIMENSIONS_MAX as u32).contains(dimensions), || {
                format!("there are 1 to {DIMENSIONS_MAX} dimensions")
            }),
            Self::FatTree { p, q, r } => at_least_one(&[*p])
                .and(require(*q >= 2, || "a switch has at least 2 links down".to_owned()))
                .and_then(|()| {
                    require(q % p == 0, || {
                        "the links up (the first size) divide the links down (the second)".to_owned()
                    })
                })
                .and(levels(*r)),
            Self::KaryFatTree { k } => require(*k >= 2 && k % 2 == 0, || "k is even and at least 2".to_owned()),
            Self::Clos { leaves, spines } => at_least_one(&[*leaves, *spines]),
            Self::Dragonfly { p: _, a, h, groups } => at_least_one(&[*a, *h]).and_then(|()| {
                let most = a.saturating_mul(*h).saturating_add(1);
                require(groups.is_none_or(|groups| (2..=most).contains(&groups)), || {
                    format!("there are 2 to a·h + 1 = {most} groups")
                })
            }),
            Self::RandomRegular { switches, degree, .. } => require((1..*switches).contains(degree), || {
                "a switch has at least 1 link and fewer links than there are switches".to_owned()
            })
            .and(require(switches % 2 == 0 || degree % 2 == 0, || {
                "an odd number of switches cannot all have an odd number of links".to_owned()
            }))
            .and(require(*degree > 1 || *switches <= 2, || {
                "with 1 link each, more than 2 switches are not connected".to_owned()
            })),
            Self::Tree { fanout, depth } => at_least_one(&[*fanout]).and(levels(*depth)),
        };
        holds.map_err(|rule| GenerateError::Impossible { kind: self.clone(), rule })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lattice = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        match self {
            Self::Mesh(sizes) => write!(f, "mesh {}", lattice(sizes)),
            Self::Torus(sizes) => write!(f, "torus {}", lattice(sizes)),
            Self::Hypercube(dimensions) => write!(f, "hypercube {dimensions}"),
            Self::HyperX(sizes) => write!(f, "hyperx {}", lattice(sizes)),
            Self::HyperCrossbar(sizes) => write!(f, "hyper-crossbar {}", lattice(sizes)),
            Self::MTree(sizes) => write!(f, "m-tree {}", lattice(sizes)),
            Self::FatTree { p, q, r } => write!(f, "fat-tree {p},{q},{r}"),
            Self::KaryFatTree { k } => write!(f, "fat-tree k={k}"),
            Self::Clos { leaves, spines } => write!(f, "clos {leaves}x{spines}"),
            Self::Dragonfly { p, a, h, groups } => {
                write!(f, "dragonfly a={a},h={h}")?;
                p.iter().try_for_each(|p| write!(f, ",p={p}"))?;
                groups.iter().try_for_each(|groups| write!(f, ",g={groups}"))
            }
            Self::RandomRegular { switches, degree, seed } => {
                write!(f, "random-regular n={switches},d={degree},seed={seed}")
            }
            Self::Tree { fanout, depth } => write!(f, "tree fanout={fanout},depth={depth}"),
        }
    }
}

/// `4x4`, `2,4,2` or `4 4`.
fn list(text: &str) -> Option<Vec<usize>> {
    let sizes: Option<Vec<usize>> = text.split(['x', 'X', '×', ',', ' ']).map(number).collect();
    sizes.filter(|sizes| sizes.len() <= DIMENSIONS_MAX)
}

/// `a=8,h=4`, no key twice.
fn settings(text: &str) -> Option<BTreeMap<&str, u64>> {
    let mut settings = BTreeMap::new();
    for part in text.split([',', ' ']) {
        let (key, value) = part.split_once('=')?;
        if settings.insert(key, number(value)?).is_some() {
            return None;
        }
    }
    Some(settings)
}

/// Digits alone: no sign, no space.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn require(holds: bool, rule: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule()) }
}
