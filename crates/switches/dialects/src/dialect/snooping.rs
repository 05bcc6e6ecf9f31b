//! IGMP and MLD snooping in command languages: one global command turns each off, whatever is said of VLANs.
//!
//! ```text
//!   no ip igmp snooping           powerconnect, cisco-sb, edge-core, tp-link, eos, ios
//!   undo igmp-snooping            comware7, comware5
//!   undo igmp-snooping enable     huawei
//!   no set igmp                   fastpath, between configure and exit
//!   delete protocols igmp-snooping    junos
//! ```
//! A full configuration turns IGMP snooping off in all of these. MLD snooping is off from the factory on all of them but some
//! of FASTPATH's, which have it on in VLAN 1 alone, and older models do not know its command; so a full configuration turns it
//! off only where every model knows the command, and a difference only on a switch that has it on. Sources: the vendors' guides
//! and command references for Catalyst 2960 and 3750, EOS, H3C S6300, HPE 12900E, 3Com 8800, VRP, M4300, T1600G, ECS4110 and
//! Junos 13.2; a configuration of an SG350. Where the factory's setting of IGMP snooping is only believed or differs by model,
//! files have to turn it off.

use std::collections::BTreeSet;

use switch_model::Snooping;

use super::Target;
use crate::text::unknown;

/// What a language says of snooping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnoopingWords {
    /// Commands that turn IGMP snooping on and off.
    pub(crate) igmp: Option<[&'static str; 2]>,
    /// Commands that turn MLD snooping on and off.
    pub(crate) mld: Option<[&'static str; 2]>,
    /// What a full configuration turns off.
    pub(crate) in_full: &'static [Snooping],
    /// What is on from the factory, or may be by model, so that a full configuration has to turn it off.
    pub(crate) factory: &'static [Snooping],
}

impl SnoopingWords {
    /// A language that does not speak of it.
    pub(crate) const NONE: Self = Self { igmp: None, mld: None, in_full: &[], factory: &[] };

    /// Two words for each, on and off, with IGMP snooping in every full configuration; `factory` is on until then.
    pub(crate) const fn new(
        igmp: [&'static str; 2],
        mld: Option<[&'static str; 2]>,
        factory: &'static [Snooping],
    ) -> Self {
        Self { igmp: Some(igmp), mld, in_full: &[Snooping::Igmp], factory }
    }

    fn words(&self, snooping: Snooping) -> Option<[&'static str; 2]> {
        match snooping {
            Snooping::Igmp => self.igmp,
            Snooping::Mld => self.mld,
        }
    }

    /// The command that turns it on again.
    pub(crate) fn on(&self, snooping: Snooping) -> Option<&'static str> {
        self.words(snooping).map(|[on, _]| on)
    }

    /// The command that turns it off.
    pub(crate) fn off(&self, snooping: Snooping) -> Option<&'static str> {
        self.words(snooping).map(|[_, off]| off)
    }
}

/// What a command says of snooping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is turned on.
    On(Snooping),
    /// It is turned off.
    Off(Snooping),
}

/// What a command outside any section says of snooping, if it does.
pub(crate) fn said(target: Target, words: &[&str]) -> Option<Said> {
    let (undo, command) = match (target, words) {
        (Target::Comware7 | Target::Comware5 | Target::Huawei, ["undo", rest @ ..]) => (true, rest),
        (Target::Junos, ["set", rest @ ..]) => (false, rest),
        (Target::Junos, ["delete", rest @ ..]) => (true, rest),
        (Target::Junos, _) => return None,
        (_, ["no", rest @ ..]) => (true, rest),
        (Target::Eos, ["default", "mld", "snooping"]) => return Some(Said::Off(Snooping::Mld)),
        (Target::Eos | Target::Ios, ["default", rest @ ..]) => (false, rest),
        _ => (false, words),
    };
    let snooping = match (target, command) {
        (
            Target::PowerConnect | Target::CiscoSb | Target::EdgeCore | Target::TpLink | Target::Ios | Target::Eos,
            ["ip", "igmp", "snooping"],
        )
        | (Target::Fastpath, ["set", "igmp"])
        // Older releases of Comware say it as VRP does.
        | (Target::Comware7 | Target::Comware5, ["igmp-snooping"])
        | (Target::Comware7 | Target::Comware5 | Target::Huawei, ["igmp-snooping", "enable"]) => Snooping::Igmp,
        (
            Target::PowerConnect | Target::CiscoSb | Target::EdgeCore | Target::TpLink | Target::Ios,
            ["ipv6", "mld", "snooping"],
        )
        | (Target::Eos, ["mld", "snooping"])
        | (Target::Fastpath, ["set", "mld"])
        | (Target::Comware7 | Target::Comware5, ["mld-snooping"])
        | (Target::Comware7 | Target::Comware5 | Target::Huawei, ["mld-snooping", "enable"]) => Snooping::Mld,
        // What is set for one VLAN turns it on for that one; only what goes as a whole turns it off.
        (Target::Junos, ["protocols", "igmp-snooping", rest @ ..]) if !undo || rest.is_empty() => Snooping::Igmp,
        (Target::Junos, ["protocols", "mld-snooping", rest @ ..]) if !undo || rest.is_empty() => Snooping::Mld,
        _ => return None,
    };
    Some(if undo { Said::Off(snooping) } else { Said::On(snooping) })
}

/// Does what a command outside any section says of snooping.
///
/// # Errors
/// That the command is none.
pub(crate) fn tell(target: Target, words: &[&str], on: &mut BTreeSet<Snooping>) -> Result<(), String> {
    match said(target, words) {
        Some(Said::On(snooping)) => on.insert(snooping),
        Some(Said::Off(snooping)) => on.remove(&snooping),
        None => return unknown(words),
    };
    Ok(())
}
