//! Names that the kernel accepts for names that people chose.
//!
//! A lab `demo` with switch `leaf/1` and host `n1` owns the namespaces `esp-demo-leaf:1` and `esp-demo-n1`. Lab names
//! hold no `-`, so the lab of a namespace is never in doubt. Of a node's name every `/` becomes `:`, and every byte that a
//! file's name or a line of `ip -batch` could not carry becomes `~` and two hexadecimal digits (`#` begins a comment there);
//! so do `:` and `~` themselves, so that no two names become one.
//!
//! ```text
//! sw1, port g23           → device g23
//! sw1, port Ethernet1/1   → device p7~  (port 7 of the switch, alias Ethernet1/1)
//! sw1, port x#y           → device p8~
//! host n#1                → esp-demo-n~231
//! switch x and host x     → esp-demo-x and esp-demo-x~host
//! ```

use crate::LabError;

/// Longest lab name, in bytes.
pub const LAB_NAME_BYTES_MAX: usize = 32;

/// The device of a machine's first port.
pub const HOST_DEVICE: &str = "eth0";

/// The device of a machine's `number`-th port, from 0.
pub(crate) fn host_device(number: usize) -> String {
    format!("eth{number}")
}

/// The bridge of a switch on the bridge back end; a port whose name holds a `~` has another device ([`port_device`]).
pub(crate) const BRIDGE_DEVICE: &str = "br~";

/// Longest device name that Linux accepts: `IFNAMSIZ` less its terminator.
const DEVICE_NAME_BYTES_MAX: usize = 15;

/// Refuses lab names that namespace names could not carry unambiguously.
///
/// # Errors
/// [`LabError::BadName`].
pub fn check_lab_name(name: &str) -> Result<(), LabError> {
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if (1..=LAB_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(usable) {
        Ok(())
    } else {
        Err(LabError::BadName { name: name.to_owned(), bytes_max: LAB_NAME_BYTES_MAX })
    }
}

/// What the names of a lab's namespaces start with.
pub(crate) fn namespace_prefix(lab: &str) -> String {
    format!("esp-{lab}-")
}

/// The namespace of a switch.
pub fn switch_namespace(lab: &str, switch: &str) -> String {
    format!("{}{}", namespace_prefix(lab), plain(switch))
}

/// The namespace of a host; `is_switch` says whether a name belongs to a switch.
pub fn host_namespace(lab: &str, host: &str, is_switch: impl Fn(&str) -> bool) -> String {
    let suffix = if is_switch(host) { "~host" } else { "" };
    format!("{}{}{suffix}", namespace_prefix(lab), plain(host))
}

/// The name of a node as a part of a file's name, and as a word of a line for iproute2. Different names stay different.
pub(crate) fn plain(node: &str) -> String {
    let mut name = String::with_capacity(node.len());
    for byte in node.bytes() {
        match byte {
            b'/' => name.push(':'),
            b'-' | b'_' | b'.' | b'+' | b'@' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => name.push_str(&format!("~{byte:02x}")),
        }
    }
    name
}

/// The device of a switch's `number`-th port.
pub fn port_device(port: &str, number: usize) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@".contains(&byte);
    // `.` and `..` are no file names under /proc/sys/net; `all` and `default` are taken there, and `lo` is everywhere.
    let taken = matches!(port, "." | ".." | "all" | "default" | "lo");
    // iproute2 reads a leading `-` as an option.
    let usable = port.len() <= DEVICE_NAME_BYTES_MAX && port.bytes().all(plain) && !port.starts_with('-') && !taken;
    if usable { port.to_owned() } else { format!("p{number}~") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_names_leave_no_doubt() {
        for name in ["a", "demo", "Torus_4x4"] {
            assert!(check_lab_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(LAB_NAME_BYTES_MAX + 1);
        for name in ["", "a-b", "a/b", "..", "é", "a b", long.as_str()] {
            assert!(matches!(check_lab_name(name), Err(LabError::BadName { .. })), "{name}");
        }
    }

    #[test]
    fn nodes_of_one_name_get_two_namespaces() {
        assert_eq!(switch_namespace("demo", "leaf/1"), "esp-demo-leaf:1");
        assert_eq!(host_namespace("demo", "n1", |_| false), "esp-demo-n1");
        assert_eq!(host_namespace("demo", "x", |name| name == "x"), "esp-demo-x~host");
        assert_eq!(host_namespace("demo", "n#1", |_| false), "esp-demo-n~231");
        assert_eq!(switch_namespace("demo", "a b:c/é"), "esp-demo-a~20b~3ac:~c3~a9");
    }

    #[test]
    fn ports_keep_names_that_linux_accepts() {
        for port in ["g23", "1", "eth0.1", "abcdefghijklmno"] {
            assert_eq!(port_device(port, 7), port);
        }
        for port in ["Ethernet1/1", "abcdefghijklmnop", "lo", "all", ".", "é1", "-x", "x#y", "#1", "1/1 a"] {
            assert_eq!(port_device(port, 7), "p7~");
        }
    }
}
