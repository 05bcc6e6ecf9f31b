//! Switches that answer, by whichever way.

use std::time::Duration;

use bridge_mib::objects::binding_text;
use cancel::Cancel;
use drivers::{snmp::Device, ssh};
use snmp::UdpLink;
use switch_model::{
    SwitchConfig,
    driver::{Driver, Fault},
    mark::Mark,
};

use crate::parallel::at_once;

/// A switch that answers, by whichever way.
#[derive(Debug)]
pub enum Reached {
    /// By SNMP.
    Snmp(Box<Device<UdpLink>>),
    /// By its command line.
    CommandLine(ssh::Device),
}

/// The SETs or command lines that would be sent to a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// SETs over SNMP, each with its bindings in words.
    pub sets: Vec<String>,
    /// Lines of a command line.
    pub lines: Vec<String>,
}

/// A switch, or why it does not answer.
pub type Connected = Result<Reached, Fault>;

impl Reached {
    /// What would take the switch from one state to another and leave a deployment tag; `found` is the tag it has.
    ///
    /// # Errors
    /// [`Fault`], where a state cannot be had.
    pub fn rehearse(
        &mut self,
        before: &SwitchConfig,
        after: &SwitchConfig,
        mark: Mark,
        found: Option<Mark>,
    ) -> Result<Commands, Fault> {
        match self {
            Self::Snmp(device) => {
                let sets = device.rehearse(before, after, mark)?;
                let text = |set: &Vec<_>| set.iter().map(binding_text).collect::<Vec<_>>().join("  ");
                Ok(Commands { sets: sets.iter().map(text).collect(), lines: Vec::new() })
            }
            Self::CommandLine(device) => {
                Ok(Commands { sets: Vec::new(), lines: device.rehearse(before, after, mark, found)? })
            }
        }
    }

    /// From now on it may be silent for so long before it counts as lost, where management frames take the way that is
    /// being changed.
    pub fn set_patience(&mut self, total: Duration) {
        if let Self::Snmp(device) = self {
            device.set_patience(total);
        }
    }

    /// From now on whoever holds this token can have requests to the switch end early.
    pub fn set_cancel(&mut self, cancel: &Cancel) {
        self.driver().set_cancel(cancel);
    }

    /// The switch, whichever way it is reached by.
    pub fn driver(&mut self) -> &mut dyn Driver {
        match self {
            Self::Snmp(device) => device.as_mut(),
            Self::CommandLine(device) => device,
        }
    }
}

/// Switches as a deployment takes them.
pub(crate) fn drivers(devices: &mut [Connected]) -> Vec<Result<&mut dyn Driver, Fault>> {
    devices.iter_mut().map(|device| device.as_mut().map(Reached::driver).map_err(|fault| fault.clone())).collect()
}

/// Has switches include the unmanaged ports of these names, `[switch]`.
pub(crate) fn include_named(devices: &mut [Connected], names: &[Vec<String>], parallel: usize) {
    each_device(devices, parallel, |at, device| device.driver().include(&names[at]));
}

/// Does something with every switch that answers, so many at a time; one that fails is one that does not.
pub(crate) fn each_device<R: Send + Default>(
    devices: &mut [Connected],
    parallel: usize,
    work: impl Fn(usize, &mut Reached) -> Result<R, Fault> + Sync,
) -> Vec<R> {
    at_once(devices.iter_mut().enumerate().collect(), parallel, |(at, device): (usize, &mut Connected)| {
        match device.as_mut().map(|reached| work(at, reached)) {
            Ok(Ok(result)) => result,
            Ok(Err(fault)) => {
                *device = Err(fault);
                R::default()
            }
            Err(_) => R::default(),
        }
    })
}
