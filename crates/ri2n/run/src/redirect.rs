//! Catches the TCP connections of programs that no library can be put before: static programs, and those of Go.
//!
//! They run in a control group of their own, to which small eBPF programs are attached. A connection to one of RI2N's
//! networks goes to a proxy port of the broker instead, and the program is told the true peer when it asks; where one of
//! them begins to listen, the broker hears of it. All of it ends with the broker: the kernel detaches the programs when
//! their owner is gone, however it went.
//!
//! ```text
//!  program ─ connect 10.1.0.2:80 ─▶ eBPF ─▶ 127.0.0.1:proxy (by_port: 10.1.0.2:80) ─▶ broker ══ RI2N ══▶ peer
//! ```
//!
//! Source: `bpf/redirect.bpf.c`; Linux, `cgroup/connect4`, `cgroup/getpeername4`, `sockops`.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, RingBufferBuilder};

use ri2n_session::Policy;

use crate::{
    local_only,
    networks::{Networks, own_networks},
};

const OBJECT: &[u8] = include_bytes!("../bpf/redirect.bpf.o");
/// How control groups of sessions are named: this, and the broker's process number.
const GROUP_PREFIX: &str = "ri2n-run-";
const REDIRECTED: u8 = 1;
const NEVER: u8 = 0;
/// `struct endpoint` of the eBPF programs.
const ENDPOINT_BYTES: usize = 20;

/// What the broker holds of a control group whose connections it catches.
pub(crate) struct Redirect {
    group: PathBuf,
    object: Object,
    /// Dropping them detaches the programs.
    _links: Vec<Link>,
    _guard: Option<[OwnedFd; 2]>,
    _mount: Option<OwnedFd>,
}

/// Why connections cannot be caught here.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// A step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The kernel refuses the eBPF programs.
    #[error("{step}: {source} (Linux 5.15 and root are needed)")]
    Bpf {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: libbpf_rs::Error,
    },
}

impl Redirect {
    /// Makes the control group, and attaches the programs with the proxy's ports and the networks.
    ///
    /// # Errors
    /// [`RedirectError`].
    pub(crate) fn begin(proxies: &[TcpListener], networks: &Networks, policy: Policy) -> Result<Self, RedirectError> {
        let (mount, kept) = group_mount()?;
        sweep(&mount);
        let group = mount.join(format!("{GROUP_PREFIX}{}", std::process::id()));
        step("make the control group", fs::create_dir(&group))?;
        let mut made = Made { group: Some(group.clone()) };
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .and_then(libbpf_rs::OpenObject::load)
            .map_err(|source| RedirectError::Bpf { step: "load the eBPF programs", source })?;
        fill(&object, proxies, networks)?;
        let directory = step("open the control group", fs::File::open(&group))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            let link = program.attach_cgroup(directory.as_raw_fd());
            links.push(link.map_err(|source| RedirectError::Bpf { step: "attach the eBPF programs", source })?);
        }
        let guard = match policy {
            Policy::PlainTcpAllowed => None,
            Policy::Required => {
                Some(step("keep plain TCP from the group's listeners", local_only::attach_to_group(directory.as_fd()))?)
            }
        };
        made.group = None;
        Ok(Self { _guard: guard, group, object, _links: links, _mount: kept })
    }

    /// Takes a process into the control group, and with it everything that it starts.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn take_in(&self, process: i32) -> Result<(), RedirectError> {
        step("enter the control group", fs::write(self.group.join("cgroup.procs"), process.to_string()))
    }

    /// Where the connection that came from this port of this machine wanted to go.
    pub(crate) fn wanted(&self, port: u16) -> Option<SocketAddr> {
        let map = self.map("by_port")?;
        let value = map.lookup(&u32::from(port).to_ne_bytes(), MapFlags::ANY).ok()??;
        endpoint(&value)
    }

    /// Says whom a knock stands for, before it is made.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn announce(&self, knock: SocketAddr, peer: SocketAddr) -> io::Result<()> {
        let map = self.map("knocks").ok_or(io::ErrorKind::NotFound)?;
        let key = u32::from(knock.port()).to_ne_bytes();
        map.update(&key, &endpoint_bytes(peer), MapFlags::ANY).map_err(io::Error::other)
    }

    /// Calls `heard` for every socket of the group that begins to listen, until `ended` says so.
    pub(crate) fn hear(&self, ended: impl Fn() -> bool, heard: impl Fn(SocketAddr)) -> Result<(), libbpf_rs::Error> {
        let map = self.map("listening").ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, |event| {
            if let Some(address) = endpoint(event) {
                heard(address);
            }
            0
        })?;
        let ring = builder.build()?;
        while !ended() {
            match ring.poll(Duration::from_millis(200)) {
                Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a process is left in the group.
    pub(crate) fn is_populated(&self) -> bool {
        fs::read_to_string(self.group.join("cgroup.procs")).is_ok_and(|processes| !processes.trim().is_empty())
    }

    /// Removes the control group; one that somebody still lives in is left to the next session's sweep.
    pub(crate) fn remove_group(&self) {
        let _ = fs::remove_dir(&self.group);
    }

    fn map(&self, name: &str) -> Option<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == name)
    }
}

/// Where control groups of version 2 are mounted. `ip netns exec` hides them, so if they are nowhere to be seen they are
/// mounted where nobody else sees them, as long as the descriptor is open.
fn group_mount() -> Result<(PathBuf, Option<OwnedFd>), RedirectError> {
    let mounts = step("read /proc/mounts", fs::read_to_string("/proc/mounts"))?;
    let mounted = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    });
    if let Some(mounted) = mounted {
        return Ok((mounted, None));
    }
    let mount = step("mount control groups of version 2", mount_unseen())?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

/// `fsopen(2)`, `fsconfig(2)`, `fsmount(2)`: a mount without a place.
fn mount_unseen() -> io::Result<OwnedFd> {
    const FSOPEN_CLOEXEC: libc::c_long = 1;
    const FSMOUNT_CLOEXEC: libc::c_long = 1;
    const FSCONFIG_CMD_CREATE: libc::c_long = 6;
    let checked = |result: libc::c_long| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) };
    // SAFETY: the name is a constant, the other pointers may be null, and descriptors that come back are ours.
    unsafe {
        let system = checked(libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), FSOPEN_CLOEXEC))?;
        let system = OwnedFd::from_raw_fd(system);
        let null = std::ptr::null::<u8>();
        checked(libc::syscall(libc::SYS_fsconfig, system.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0_i64))?;
        let mount = checked(libc::syscall(libc::SYS_fsmount, system.as_raw_fd(), FSMOUNT_CLOEXEC, 0_i64))?;
        Ok(OwnedFd::from_raw_fd(mount))
    }
}

/// Removes a control group that was made if the rest fails.
struct Made {
    group: Option<PathBuf>,
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Removes empty groups whose broker is gone.
fn sweep(mount: &Path) {
    for entry in fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let broker = name.to_str().and_then(|name| name.strip_prefix(GROUP_PREFIX)?.parse::<u32>().ok());
        if broker.is_some_and(|broker| !Path::new("/proc").join(broker.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn fill(object: &Object, proxies: &[TcpListener], networks: &Networks) -> Result<(), RedirectError> {
    let map = |name: &str| object.maps().find(|map| map.name() == name).expect("a map of the object");
    let mut ports = [0_u32; 2];
    for proxy in proxies {
        let address = step("ask for the proxy's port", proxy.local_addr())?;
        ports[usize::from(address.is_ipv6())] = u32::from(address.port());
    }
    let proxy = step("ask for the proxy's port", proxies.first().ok_or_else(|| io::ErrorKind::NotFound.into()))?;
    let netns = step("ask for the network namespace", namespace_cookie(proxy))?;
    let settings = [&netns.to_ne_bytes()[..], &ports[0].to_ne_bytes(), &ports[1].to_ne_bytes()].concat();
    let bpf = |step| move |source| RedirectError::Bpf { step, source };
    map("settings").update(&0_u32.to_ne_bytes(), &settings, MapFlags::ANY).map_err(bpf("write the eBPF settings"))?;
    let own = own_networks();
    let listed = match networks {
        Networks::Attached => own.to_vec(),
        Networks::Listed(listed) => listed.clone(),
    };
    let never = own.iter().map(|own| (own.address(), full(own.address()), NEVER));
    let mut entries: Vec<(IpAddr, u8, u8)> = listed
        .iter()
        .filter(|prefix| !prefix.address().is_loopback())
        .map(|prefix| (prefix.address(), prefix.bits(), REDIRECTED))
        .chain(never)
        .collect();
    for (loopback, bits) in [(IpAddr::V4(Ipv4Addr::LOCALHOST), 8), (Ipv6Addr::LOCALHOST.into(), 128)] {
        entries.push((loopback, bits, NEVER));
    }
    for (address, bits, what) in entries {
        let (mapped, offset) = match address {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), 96),
            IpAddr::V6(v6) => (v6, 0),
        };
        let key = [&(offset + u32::from(bits)).to_ne_bytes()[..], &mapped.octets()].concat();
        map("networks").update(&key, &[what], MapFlags::ANY).map_err(bpf("write the eBPF networks"))?;
    }
    Ok(())
}

fn full(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The kernel's number of the network namespace that a socket lives in.
fn namespace_cookie(socket: &TcpListener) -> io::Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the value has the size that is told.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &mut length)
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

fn endpoint_bytes(address: SocketAddr) -> [u8; ENDPOINT_BYTES] {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; ENDPOINT_BYTES];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&u32::from(address.port()).to_ne_bytes());
    bytes
}

fn endpoint(bytes: &[u8]) -> Option<SocketAddr> {
    let ip: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let port = u32::from_ne_bytes(bytes.get(16..ENDPOINT_BYTES)?.try_into().ok()?);
    Some(SocketAddr::new(IpAddr::from(ip).to_canonical(), port as u16))
}

fn step<T>(step: &'static str, result: io::Result<T>) -> Result<T, RedirectError> {
    result.map_err(|source| RedirectError::Step { step, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_come_back() {
        for address in ["10.1.2.3:80", "[fd00::1]:65535"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(endpoint(&endpoint_bytes(address)), Some(address));
        }
        assert_eq!(endpoint(&[0; 19]), None);
    }
}
