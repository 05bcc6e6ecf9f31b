//! What a terminal has shown, read without one: a running configuration that somebody has kept, or any bytes at all.

use super::{language::language, linux::state, running::read_running, screen::Screen};
use dialects::Target;
use switch_model::{SwitchConfig, unmanaged::without_others};

/// Reads bytes as a terminal's, and their lines as a running configuration, whose ports are `names`. Of a Linux bridge it is
/// what `ip`, `bridge` (twice) and `ethtool` print, each behind a zero byte.
///
/// # Errors
/// What is not understood of it; also for a target that is not spoken over SSH.
pub fn read_shown(target: Target, bytes: &[u8], names: &[String]) -> Result<SwitchConfig, String> {
    if target == Target::LinuxBridge {
        let text = String::from_utf8_lossy(bytes);
        let mut parts = text.splitn(4, '\0');
        let parts = [(); 4].map(|()| parts.next().unwrap_or_default());
        return state(names, parts).map(|(config, _)| without_others(config, names.len()));
    }
    let language = language(target).ok_or("it is not spoken over SSH")?;
    let mut screen = Screen::default();
    screen.take(bytes);
    let mut lines = screen.wipe();
    lines.push(screen.line());
    read_running(language, &lines, names).map(|running| without_others(running.config, names.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_of_a_session_is_read() {
        let bytes =
            b"no spanning-tree\r\ninterface range ethernet g(1-2)\r\n --More-- \r          \rshutdown\r\nexit\r\n";
        let names = ["g1", "g2"].map(str::to_owned);
        let config = read_shown(Target::PowerConnect, bytes, &names).expect("understood");
        assert!(config.ports.iter().all(|port| port.admin == fabric::Admin::Down));
        assert!(read_shown(Target::Sonic, bytes, &names).is_err());
        assert!(read_shown(Target::LinuxBridge, b"[]\0[]\0[]\0", &[]).is_ok());
    }
}
