//! Who a switch is, in three requests: scalars of SNMPv2-MIB, LLDP-MIB and BRIDGE-MIB, and the serial number of ENTITY-MIB's
//! chassis.

use fabric::Mac;

use bridge_mib::objects::{bridge, entity, lldp, system};
use snmp::{Link, Oid, Session, SessionError, Value, engine};
use switch_model::{identity::Identity, printable::told, station::LldpId};

/// entPhysicalClass of a chassis.
const CHASSIS: i32 = 3;
/// Rows of entPhysicalTable among which the chassis is looked for: devices begin with it, or with the stack that it is in.
const ENTITIES: i32 = 10;

/// Reads who a switch is. What it does not say is none.
///
/// # Errors
/// [`SessionError`]; that a switch has no such object is no error.
pub fn read_identity<L: Link>(session: &mut Session<L>) -> Result<Identity, SessionError> {
    let scalars =
        [system::NAME, lldp::LOC_CHASSIS_ID_SUBTYPE, lldp::LOC_CHASSIS_ID, bridge::BRIDGE_ADDRESS, engine::ENGINE_ID];
    let values = session.get(&scalars.map(|scalar| scalar.instance()))?;
    let chassis = match (values[1].int(), values[2].octets()) {
        (Some(subtype), Some(octets)) if !octets.is_empty() => Some(LldpId { subtype, octets: octets.to_vec() }),
        _ => None,
    };
    let bridge = values[3].octets().and_then(|octets| octets.try_into().ok()).map(Mac::new);
    Ok(Identity {
        chassis,
        bridge: bridge.filter(|mac| !mac.is_zero()),
        // Of version 3 the engine has signed its name.
        engine: session.engine_id().map(<[u8]>::to_vec).or_else(|| values[4].octets().map(<[u8]>::to_vec)),
        serial: serial(session)?,
        system: values[0].octets().map(told).filter(|name| !name.is_empty()),
    })
}

/// Reads sysDescr: its make and model, as most agents have it. It may hold anything.
///
/// # Errors
/// [`SessionError`]; that a switch has no such object is no error.
pub fn read_description<L: Link>(session: &mut Session<L>) -> Result<Option<String>, SessionError> {
    let values = session.get(&[system::DESCR.instance()])?;
    Ok(values[0].octets().map(|octets| String::from_utf8_lossy(octets).into_owned()).filter(|text| !text.is_empty()))
}

/// The serial number of the first chassis.
fn serial<L: Link>(session: &mut Session<L>) -> Result<Option<String>, SessionError> {
    let classes = match session.get_bulk(&[entity::CLASS.root()], ENTITIES) {
        Ok(classes) => classes,
        Err(SessionError::Refused { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_chassis = |(_, value): &&(Oid, Value)| value.int() == Some(CHASSIS);
    let found = classes.iter().find(is_chassis).and_then(|(oid, _)| oid.strip_prefix(entity::CLASS.oid));
    let Some(row) = found else { return Ok(None) };
    let values = session.get(&[Oid::new(&[entity::SERIAL_NUM.oid, row].concat())])?;
    Ok(values[0].octets().map(|octets| told(octets).trim().to_owned()).filter(|serial| !serial.is_empty()))
}
