//! What a deployment would write, without writing it.

use drivers::credentials::Keyring;
use fabric::SwitchId;
use switch_model::{
    driver::Fault,
    edit::edits,
    mark::{Mark, Phase},
};

use super::{
    DeployEvent, DeployRequest, Events, Looked, Route, Surveyed, begun_from_held, digest_of, floods, tell_mtus,
    tell_weak,
};
use crate::{
    CancellationToken, ConnectOptions, Error, Fabric,
    parallel::at_once,
    reached::{Commands, Connected, Reached},
};

/// What a deployment would write.
#[derive(Debug)]
pub enum Rehearsal {
    /// The judge finds the plan unfit.
    Unfit,
    /// It was asked to stop.
    Interrupted,
    /// `stages[switch]`: what would be written to each switch, or why it cannot be asked; none is, where
    /// [`Looked::refuses`] says so.
    Rehearsed {
        /// Where the deployment would lead, and what was seen.
        surveyed: Box<Surveyed>,
        /// What would be written.
        stages: Vec<Result<Vec<RehearsedStage>, Fault>>,
    },
}

/// What one stage does to one switch.
#[derive(Clone, Debug)]
pub struct RehearsedStage {
    /// What the stage is called.
    pub name: String,
    /// Its writes, in words.
    pub edits: Vec<String>,
    /// The SETs or command lines that would be sent.
    pub commands: Commands,
}

/// Surveys the switches and says what [`super::deploy`] would write. Nothing is written, on switches or in the store.
///
/// # Errors
/// [`Error`], if the request cannot be.
pub fn rehearse(
    request: &DeployRequest<'_>,
    (keyring, options): (&Keyring, &ConnectOptions),
    token: &CancellationToken,
    events: &mut Events<'_>,
) -> Result<Rehearsal, Error> {
    let plan = request.plan;
    let mut route = Route::new(request)?;
    if !verify::check(route.plan.plan()).is_deployable() {
        return Ok(Rehearsal::Unfit);
    }
    let topology = route.topology.clone();
    let fabric = Fabric::new(&topology, route.mark_vlan(), keyring, options, token.for_requests())?;
    tell_weak(&fabric, events);
    let mut devices = fabric.connect_all();
    floods::refuse_untold(plan, &topology, &devices)?;
    let digest = digest_of(plan)?;
    route = begun_from_held(route, request, None, &mut devices, fabric.parallel())?;
    let mut looked = Looked::new(request, &route, &fabric, &mut devices)?;
    looked.shut_in(&mut route);
    let unmanaged = fabric.include_all_unmanaged(&mut devices, &route.vlans());
    if token.is_cancelled() {
        return Ok(Rehearsal::Interrupted);
    }
    events(DeployEvent::Unmanaged(&topology, &unmanaged));
    tell_mtus(plan, &route, &mut looked, &mut devices, fabric.parallel(), events);
    let switches = topology.switch_ids().zip(devices).zip(&unmanaged).collect();
    let one = |((switch, device), unmanaged): ((SwitchId, Connected), &Vec<String>)| {
        device.and_then(|device| rehearse_one(&route, switch, device, unmanaged, digest))
    };
    let stages = at_once(switches, fabric.parallel(), one);
    Ok(Rehearsal::Rehearsed { surveyed: Box::new(Surveyed { route, looked }), stages })
}

fn rehearse_one(
    route: &Route,
    switch: SwitchId,
    mut device: Reached,
    unmanaged: &[String],
    digest: u32,
) -> Result<Vec<RehearsedStage>, Fault> {
    let reading = device.driver().read()?;
    // The nonce is drawn when it is done.
    let generation = reading.mark.map_or(0, |mark| mark.generation).saturating_add(1);
    let mark = Mark::new(generation, 0, digest);
    let (mut found, mut found_mark) = (reading.config, reading.mark);
    let mut stages = Vec::new();
    let states = route.states(switch, &found, unmanaged);
    let last = states.len().saturating_sub(1);
    for (at, (name, state)) in states.into_iter().enumerate() {
        let mark = mark.at(if at == last { Phase::AtRest } else { Phase::UnderWay });
        let commands = device.rehearse(&found, &state, mark, found_mark)?;
        found_mark = Some(mark);
        let edits = edits(&found, &state).iter().map(|edit| edit.sentence(&state)).collect();
        stages.push(RehearsedStage { name, edits, commands });
        found = state;
    }
    Ok(stages)
}
