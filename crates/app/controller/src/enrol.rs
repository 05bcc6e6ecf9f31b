//! Enrolment of many switches at once: what each is able to do, with a ledger in the store of what is written meanwhile.

use std::net::{IpAddr, SocketAddr};

use drivers::credentials::Keyring;
use enrol::{Enrolment, Ledger, ProbeCallbacks, ProbeRequest, Step, clean, enrol, kept::KeptLedger, rehearse};
use snmp::wire::Binding;

use crate::{CancellationToken, ConnectOptions, Error, Store, connect::session, parallel::at_once};

/// Enrols switches and returns, by `[address]`, the capabilities of each or why they are unknown. Calls `tell` with each step.
pub fn enrol_switches(
    addresses: &[IpAddr],
    request: &ProbeRequest,
    (keyring, options): (&Keyring, &ConnectOptions),
    store: &(dyn Store + Sync),
    token: &CancellationToken,
    tell: &(dyn Fn(IpAddr, Step) + Sync),
) -> Vec<Result<Enrolment, String>> {
    at_once(addresses.to_vec(), options.parallel, |address| {
        let mut callbacks = StoreCallbacks { at: SocketAddr::new(address, options.port), store, token, tell };
        let session = session(keyring, options, &address.to_string(), address).map_err(|fault| fault.to_string());
        let enrolment =
            session.and_then(|session| enrol(session, request, &mut callbacks).map_err(|error| error.to_string()));
        if enrolment.as_ref().map_or(true, |enrolment| enrolment.left.is_empty()) {
            // If it cannot be removed, cleaning up once more finds nothing.
            let _ = store.forget_ledger(address);
        }
        enrolment
    })
}

/// Returns the SETs that an enrolment would send to a switch that accepts every one of them.
///
/// # Errors
/// If the switch cannot be read.
pub fn rehearse_enrolment(
    address: IpAddr,
    request: &ProbeRequest,
    (keyring, options): (&Keyring, &ConnectOptions),
) -> Result<(Enrolment, Vec<Vec<Binding>>), String> {
    let session = session(keyring, options, &address.to_string(), address).map_err(|fault| fault.to_string())?;
    rehearse(session, request).map_err(|error| error.to_string())
}

/// What came of cleaning up after an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// The switch, as its ledger calls it.
    pub switch: String,
    /// What could not be taken back.
    pub left: Vec<String>,
}

/// Takes back what interrupted enrolments have left on these switches, or on all that the store knows if none is named.
///
/// # Errors
/// [`Error`], if the store fails.
pub fn clean_switches(
    addresses: &[IpAddr],
    (keyring, options): (&Keyring, &ConnectOptions),
    store: &dyn Store,
) -> Result<Vec<Cleaned>, Error> {
    let mut ledgers = store.ledgers()?;
    ledgers.retain(|ledger| addresses.is_empty() || addresses.contains(&ledger.address.ip()));
    let mut cleaned = Vec::new();
    for KeptLedger { switch, address, ledger } in ledgers {
        let options = ConnectOptions { port: address.port(), ..options.clone() };
        let left = match session(keyring, &options, &switch, address.ip()) {
            Ok(session) => clean(session, &ledger),
            Err(fault) => vec![fault.to_string()],
        };
        if left.is_empty() {
            store.forget_ledger(address.ip())?;
        }
        cleaned.push(Cleaned { switch, left });
    }
    Ok(cleaned)
}

/// Writes the ledger to the store, reports steps, and reads the cancellation token.
struct StoreCallbacks<'a> {
    at: SocketAddr,
    store: &'a (dyn Store + Sync),
    token: &'a CancellationToken,
    tell: &'a (dyn Fn(IpAddr, Step) + Sync),
}

impl ProbeCallbacks for StoreCallbacks<'_> {
    fn keep(&mut self, ledger: &Ledger) -> Result<(), String> {
        let kept = KeptLedger { switch: self.at.ip().to_string(), address: self.at, ledger: ledger.clone() };
        self.store.keep_ledger(&kept).map_err(|error| error.words())
    }

    fn stopped(&mut self) -> bool {
        self.token.is_cancelled()
    }

    fn tell(&mut self, step: Step) {
        (self.tell)(self.at.ip(), step);
    }
}
