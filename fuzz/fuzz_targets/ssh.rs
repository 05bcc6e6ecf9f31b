//! Any bytes as what a switch's terminal shows of its running configuration; the first names the switch.
#![no_main]

use dialects::Target;
use drivers::ssh::read_shown;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, shown)) = data.split_first() else { return };
    let target = Target::ALL[usize::from(*first) % Target::ALL.len()];
    let names: Vec<String> = fabric_fuzz::ports(target).map(str::to_owned).to_vec();
    if let Ok(config) = read_shown(target, shown, &names) {
        assert!(config.ports.iter().map(|port| &port.name).eq(&names));
        assert!(config.entries.values().all(|slot| slot.index() < names.len()));
        // What is read is read the same again.
        assert_eq!(read_shown(target, shown, &names).as_ref(), Ok(&config));
    }
});
