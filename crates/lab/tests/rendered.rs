//! Rendered configurations on switches that nobody here wrote: the kernel's bridge, told by the shell script for it, and
//! Open vSwitch, told by OpenFlow rules. The lab lays the cables and sends the frames; its own switches are taken out.

mod common;

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::{Guard, LAGS, Shape, clos, grid, lab_name, plan, ring, setting, shell, skipped, wanted};
use dialects::{Difference, Memory, RenderRequest, Target, TargetChoice};
use fabric::{Flood, LinkId, Plan, Tree, format::native::parse_native};
use lab::{
    Backend, Lab, LabError, LabOptions,
    delivery::{Delivery, Probe, check},
    netns::within,
};
use switch_model::Phase;

fn options(word: &str, backend: Backend) -> LabOptions {
    LabOptions { backend: Some(backend), rate_bps: 1_000_000_000, ..LabOptions::new(lab_name(word)) }
}

#[test]
fn the_kernels_bridge_does_what_the_script_says() {
    if skipped(Backend::Bridge) {
        return;
    }
    let plans: [(&str, Plan); 3] = [("ring", ring(4)), ("torus", grid(4, Shape::Torus)), ("clos", clos(4, 4))];
    for (word, plan) in plans.into_iter().filter(|(word, _)| wanted(word)) {
        let lab = Guard::up(&plan, &options(&format!("r{word}"), Backend::Bridge));
        take_switches_out(&lab.0);
        run_scripts(&lab.0, &plan, None, &[]);
        for &probe in Probe::ALL {
            let delivery = check(&lab.0, probe).expect("probes can be sent");
            println!("{word}: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
            assert_eq!(delivery.faults, [], "{word}: {probe}");
        }
        let status = lab.0.status().expect("a status");
        let carried: u64 = (status.switches.iter().flat_map(|switch| &switch.ports))
            .flat_map(|port| port.traffic.values())
            .map(|traffic| traffic.in_frames)
            .sum();
        assert!(carried > 0, "{word}: the bridges count what they carry");
        assert_eq!(status.unknown_floods(), 0, "{word}");
    }
}

/// LAGs of the script are the kernel's bonds, which agree by LACP.
#[test]
fn the_kernels_bonds_do_what_the_script_says() {
    if skipped(Backend::Bridge) {
        return;
    }
    let topology = parse_native("lags.yaml", LAGS).expect("valid");
    let cabling = topology.clone();
    let plan = plan(topology, |host| {
        let gone = host.index() % 3;
        Tree::new(&cabling, LinkId::all(3).filter(|link| link.index() != gone)).expect("a path")
    });
    let lab = match Lab::up(&plan, &options("rlags", Backend::Bridge), &mut |_| {}) {
        Ok(lab) => Guard(lab),
        Err(LabError::Missing(reason)) => return println!("skipped: {reason}"),
        Err(error) => panic!("the lab comes up: {error}"),
    };
    take_switches_out(&lab.0);
    for site in &lab.0.layout().switches {
        let lags = site.ports.iter().filter(|port| fabric::LagNumber::of_port(&port.name).is_some());
        let script: String = lags.map(|port| format!("ip link delete dev {}\n", port.name)).collect();
        shell(&site.namespace, &script);
    }
    run_scripts(&lab.0, &plan, None, &[]);
    for &probe in Probe::ALL {
        // Members are taken in a few seconds after they come up; until then frames are lost, and a bond without any refuses to send.
        let mut left_s = SETTLING_S * setting("LAB_SLOWNESS", 1) as u32;
        let delivery = loop {
            match check(&lab.0, probe) {
                Ok(delivery) if delivery.faults.is_empty() || left_s == 0 => break delivery,
                Err(error) if left_s == 0 => panic!("probes can be sent: {error}"),
                Ok(_) | Err(_) => left_s -= 1,
            }
            std::thread::sleep(Duration::from_secs(1));
        };
        println!("LAGs: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
        assert_eq!(delivery.faults, [], "{probe}");
    }
    // Both members of each are agreed on, by the kernels at both ends.
    for site in lab.0.layout().switches.iter().filter(|site| site.ports.iter().any(|port| port.lag.is_some())) {
        let said = shell(&site.namespace, "cat /proc/net/bonding/*\n");
        let mut ports = said.lines().filter_map(|line| line.trim().strip_prefix("Number of ports: "));
        assert!(ports.clone().count() > 0 && ports.all(|ports| ports == "2"), "{}: {said}", site.name);
    }
}

#[test]
fn a_difference_takes_running_bridges_from_one_tree_to_many() {
    if skipped(Backend::Bridge) {
        return;
    }
    let new = ring(4);
    let tree = Tree::new(&new.topology, LinkId::all(4).filter(|link| link.index() != 3)).expect("a path");
    let old = plan(new.topology.clone(), |_| tree.clone());
    let lab = Guard::up(&new, &options("rstep", Backend::Bridge));
    take_switches_out(&lab.0);
    run_scripts(&lab.0, &old, None, &[]);
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "before");
    let since = Difference { plan: &old, digest: "old" };
    for phase in Phase::ALL {
        run_scripts(&lab.0, &new, Some(since), &[phase]);
    }
    for &probe in Probe::ALL {
        assert_eq!(check(&lab.0, probe).expect("probes can be sent").faults, [], "after: {probe}");
    }
    assert_eq!(lab.0.status().expect("a status").unknown_floods(), 0);
}

/// Frames to an address that no host has, from the first host; how many of them each other host receives.
fn unknown_unicast(lab: &Lab) -> Vec<u64> {
    let hosts = &lab.layout().hosts;
    let received = |host: &lab::layout::HostSite| -> u64 {
        let devices = shell(&host.namespace, "cat /proc/net/dev\n");
        let own = devices.lines().find_map(|line| line.trim().strip_prefix(lab::name::HOST_DEVICE)?.strip_prefix(':'));
        own.and_then(|counts| counts.split_whitespace().nth(1)?.parse().ok()).expect("bytes and packets received")
    };
    let before: Vec<u64> = hosts[1..].iter().map(received).collect();
    let nobody = "10.255.255.1";
    let entry = format!("ip neigh replace {nobody} lladdr 02:ff:ff:ff:ff:01 dev {}\n", lab::name::HOST_DEVICE);
    shell(&hosts[0].namespace, &entry);
    let send = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        for _ in 0..UNKNOWN_FRAMES {
            socket.send_to(&[0; 64], (nobody, 9)).expect("sent");
        }
    };
    within(&hosts[0].namespace, send).expect("a namespace");
    // At 1 Mbit/s they take a tenth of that.
    std::thread::sleep(Duration::from_secs(1));
    hosts[1..].iter().zip(before).map(|(host, before)| received(host) - before).collect()
}

/// How long ports may take to forward once they are up, in seconds.
const SETTLING_S: u32 = 10;

/// More than all else that hosts hear meanwhile.
const UNKNOWN_FRAMES: u64 = 100;

#[test]
fn a_bridge_drops_the_floods_that_its_ports_block() {
    if skipped(Backend::Bridge) {
        return;
    }
    for flood in Flood::ALL.iter().copied() {
        let mut plan = ring(4);
        plan.policy.flood = flood;
        let (policy, topology) = (plan.policy.clone(), plan.topology.clone());
        for port in plan.devices.iter_mut().flat_map(|device| &mut device.ports) {
            port.blocked = policy.blocked_at(&topology, port.port);
        }
        let lab = Guard::up(&ring(4), &options("rflood", Backend::Bridge));
        take_switches_out(&lab.0);
        run_scripts(&lab.0, &plan, None, &[]);
        // Ports forward a moment after they come up, so what is lost at first may be heard later.
        let drops_groups = flood == Flood::DropAll;
        let is_right = |delivery: &Delivery| delivery.faults.len() == if drops_groups { delivery.pairs } else { 0 };
        let mut groups = Vec::new();
        for _ in 0..SETTLING_S {
            std::thread::sleep(Duration::from_secs(1));
            groups =
                [Probe::Dhcp, Probe::Multicast].map(|probe| check(&lab.0, probe).expect("probes can be sent")).into();
            // That nothing is heard counts only once something would have been.
            if !drops_groups && groups.iter().all(is_right) {
                break;
            }
        }
        println!("{flood}: {:?} faults", groups.iter().map(|delivery| delivery.faults.len()).collect::<Vec<_>>());
        assert!(groups.iter().all(is_right), "{flood}: {groups:?}");
        let unknown = unknown_unicast(&lab.0);
        println!("{flood}: {unknown:?} of {UNKNOWN_FRAMES} frames to an unknown address");
        let floods = flood == Flood::Forward;
        assert!(unknown.iter().all(|frames| (*frames >= UNKNOWN_FRAMES) == floods), "{flood}: {unknown:?}");
        assert!(floods || unknown.iter().all(|frames| *frames < UNKNOWN_FRAMES / 2), "{flood}: {unknown:?}");
    }
}

#[test]
fn open_vswitch_does_what_the_rules_say() {
    let Some(backend) = Backend::ALL.iter().copied().find(|backend| !skipped(*backend)) else { return };
    for program in ["ovsdb-server", "ovsdb-tool", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ethtool"] {
        if Command::new(program).arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("skipped: {program} is missing (apt-get install openvswitch-switch ethtool)");
            return;
        }
    }
    let new = ring(4);
    let tree = Tree::new(&new.topology, LinkId::all(4).filter(|link| link.index() != 3)).expect("a path");
    let old = plan(new.topology.clone(), |_| tree.clone());
    let lab = Guard::up(&new, &options("rovs", backend));
    take_switches_out(&lab.0);
    for host in &lab.0.layout().hosts {
        // A virtual cable leaves checksums to a card that is not there, and a datapath in userspace passes frames on so.
        shell(&host.namespace, &format!("ethtool -K {} tx off >/dev/null\n", lab::name::HOST_DEVICE));
    }
    let sites = &lab.0.layout().switches;
    let switches: Vec<Userspace> = sites.iter().map(|site| Userspace::start(&site.namespace)).collect();
    let run = |plan: &Plan, since: Option<Difference<'_>>, phase: Option<Phase>| {
        for (switch, script) in scripts(plan, Target::OpenVswitch, since, phase) {
            let script = format!("export OVS_RUNDIR={}\n{script}", switches[switch].folder.display());
            shell(&sites[switch].namespace, &script);
        }
    };
    run(&old, None, None);
    assert_eq!(check(&lab.0, Probe::Ping).expect("probes can be sent").faults, [], "before");
    for phase in Phase::ALL {
        run(&new, Some(Difference { plan: &old, digest: "old" }), Some(phase));
    }
    // Frames for one host that no entry knows would be flooded by the rule below this one.
    let unknown = "priority=15,table=1,dl_dst=00:00:00:00:00:00/01:00:00:00:00:00";
    for (site, switch) in sites.iter().zip(&switches) {
        let folder = switch.folder.display();
        let script = format!("export OVS_RUNDIR={folder}\novs-ofctl add-flow espalier {unknown},actions=drop\n");
        shell(&site.namespace, &script);
    }
    for &probe in Probe::ALL {
        let delivery = check(&lab.0, probe).expect("probes can be sent");
        println!("open-vswitch: {probe}: {} pairs in {:.2?}", delivery.pairs, delivery.elapsed);
        assert_eq!(delivery.faults, [], "{probe}");
    }
    for (site, switch) in sites.iter().zip(&switches) {
        let script = format!("export OVS_RUNDIR={}\novs-ofctl dump-flows espalier table=1\n", switch.folder.display());
        let flows = shell(&site.namespace, &script);
        let count = |line: &str| -> Option<u64> { line.split("n_packets=").nth(1)?.split(',').next()?.parse().ok() };
        let floods: Vec<&str> = flows.lines().filter(|line| line.contains("priority=15")).collect();
        assert_eq!(floods.iter().filter_map(|line| count(line)).collect::<Vec<_>>(), [0], "{}: {flows}", site.name);
        let carried: u64 = flows.lines().filter(|line| line.contains("priority=20")).filter_map(count).sum();
        assert!(carried > 0, "{}: {flows}", site.name);
    }
}

/// Removes whatever the lab's back end made of the switches, and leaves namespaces and cables.
fn take_switches_out(lab: &Lab) {
    for site in &lab.layout().switches {
        let script = match lab.layout().backend {
            Backend::Bridge => "ip link delete dev br~\n".to_owned(),
            Backend::Ebpf => site
                .ports
                .iter()
                .filter_map(|port| port.device.as_deref())
                .map(|device| format!("tc qdisc delete dev {device} clsact\n"))
                .collect(),
        };
        shell(&site.namespace, &script);
    }
}

/// Runs the scripts of a plan, those of some phases if it is a difference.
fn run_scripts(lab: &Lab, plan: &Plan, since: Option<Difference<'_>>, phases: &[Phase]) {
    let phases: Vec<Option<Phase>> =
        if since.is_some() { phases.iter().copied().map(Some).collect() } else { vec![None] };
    for phase in phases {
        for (switch, script) in scripts(plan, Target::LinuxBridge, since, phase) {
            shell(&lab.layout().switches[switch].namespace, &script);
        }
    }
}

/// The scripts of a phase, by switch.
fn scripts(plan: &Plan, target: Target, since: Option<Difference<'_>>, phase: Option<Phase>) -> Vec<(usize, String)> {
    let request = RenderRequest { plan, digest: "plan", target: TargetChoice::Named(target), switch: None, since };
    let mut memory = Memory::default();
    let parts = dialects::render(&request, &mut memory).expect("it can be said");
    let due = parts.iter().filter(|part| part.phase == phase);
    due.map(|part| {
        let switch = plan.topology.find_switch(&part.switch).expect("a switch of the plan").index();
        (switch, String::from_utf8(memory.files[&part.files[0]].clone()).expect("text"))
    })
    .collect()
}

/// Open vSwitch's database and daemon in a namespace, with the datapath that needs nothing of the kernel. Both end with
/// the test.
struct Userspace {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Userspace {
    fn start(namespace: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("{namespace}-ovs"));
        std::fs::create_dir(&folder).expect("a fresh folder");
        let (database, socket) = (folder.join("conf.db"), folder.join("db.sock"));
        let status = Command::new("ovsdb-tool").arg("create").arg(&database).arg(SCHEMA).status().expect("ovsdb-tool");
        assert!(status.success());
        let mut switch = Self { folder: folder.clone(), children: Vec::new() };
        let server = Command::new("ovsdb-server")
            .arg(&database)
            .arg(format!("--remote=punix:{}", socket.display()))
            .arg("--no-chdir")
            .envs([("OVS_RUNDIR", &folder), ("OVS_LOGDIR", &folder)])
            .stderr(Stdio::null())
            .spawn()
            .expect("ovsdb-server");
        switch.children.push(server);
        wait_for(&socket);
        let run = || {
            Command::new("ovs-vswitchd")
                .arg(format!("unix:{}", socket.display()))
                .envs([("OVS_RUNDIR", &folder), ("OVS_LOGDIR", &folder)])
                .stderr(Stdio::null())
                .spawn()
                .expect("ovs-vswitchd")
        };
        switch.children.push(within(namespace, run).expect("a namespace"));
        let ready = format!(
            "export OVS_RUNDIR={}\novs-vsctl --timeout=30 --no-wait init\n\
             ovs-vsctl --timeout=30 add-br espalier -- set bridge espalier datapath_type=netdev\n",
            folder.display()
        );
        shell(namespace, &ready);
        switch
    }
}

/// Where Debian keeps the database's schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

impl Drop for Userspace {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // Both may have ended already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays behind: {error}", self.folder.display());
        }
    }
}

fn wait_for(path: &Path) {
    for _ in 0..200 {
        if path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} does not come", path.display());
}
