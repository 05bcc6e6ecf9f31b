use fabric::{Plan, Policy, Rails, format::native::parse_native};

use super::*;

/// Two machines with ports on two switches; `addresses` of the first one's ports.
fn plan(nics: [&str; 2], addresses: [&str; 2], policy: &Policy) -> Plan {
    let text = format!(
        "links: [\"s1:1 -- s2:1\"]\nswitches: {{s1: {{}}, s2: {{}}}}\nmachines:\n  gpu1:\n    nics:\n      \
         {}: {{mac: \"02:00:00:00:01:01\", port: \"s1:2\", rail: 0, ip: \"{}\"}}\n      \
         {}: {{mac: \"02:00:00:00:01:02\", port: \"s2:2\", rail: 1, ip: \"{}\"}}\n\
         hosts:\n  login: {{mac: \"02:00:00:00:02:01\", port: \"s1:3\"}}\n",
        nics[0], addresses[0], nics[1], addresses[1]
    );
    let topology = parse_native("test.yaml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    planner::plan(&topology, policy, None).expect("two switches")
}

fn setup(plan: &Plan) -> HostSetup<'_> {
    HostSetup::new(plan, "d1", machine(plan, "gpu1")).expect("two ports")
}

fn machine(plan: &Plan, name: &str) -> MachineId {
    let position = plan.topology.machines().iter().position(|machine| machine.name == name);
    MachineId::new(position.expect("a machine of the plan"))
}

#[test]
fn a_script_has_every_value_of_the_plan() {
    let policy = Policy { mtu_bytes: 9000, subnet: "10.7.0.0/16".parse().expect("a subnet"), ..Policy::default() };
    let plan = plan(["eth0", "eth1"], ["10.7.1.1", "10.7.1.2"], &policy);
    let text = setup(&plan).script();
    let expected = "
# eth1, rail 1: 10.7.1.2
ip link set dev 'eth1' mtu 9000 up
ip -4 address replace 10.7.1.2/16 broadcast + dev 'eth1'
for family in -4 -6; do
    while ip $family rule del table 1002 2>/dev/null; do :; done
    ip $family route flush table 1002 2>/dev/null || :
done
ip -4 route replace 10.7.0.0/16 dev 'eth1' table 1002 scope link src 10.7.1.2
ip -4 rule add from 10.7.1.2 table 1002 priority 1002
";
    assert!(text.ends_with(expected), "{text}");
    for line in [
        "# Machine gpu1, from plan d1.",
        "set -eu",
        "check 'eth0' '02:00:00:00:01:01'",
        "check 'eth1' '02:00:00:00:01:02'",
        "sysctl -q -w 'net/ipv4/conf/eth0/arp_ignore=1' 'net/ipv4/conf/eth0/arp_announce=2' 'net/ipv4/conf/eth0/rp_filter=2'",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

/// The size of the largest path set, not the policy's limit.
#[test]
fn settings_of_ri2n_say_how_many_paths_a_pair_has() {
    let text = "links: [\"s1:11 -- s2:11\", \"s1:12 -- s2:12\", \"s1:13 -- s2:13\"]\nswitches: {s1: {}, s2: {}}\nmachines:\n  gpu1:\n    \
                nics: {eth0: {mac: \"02:00:00:00:01:01\", port: \"s1:2\"}, eth1: {mac: \"02:00:00:00:01:02\", port: \"s2:2\"}}\n\
                hosts:\n  login: {mac: \"02:00:00:00:02:01\", port: \"s1:3\"}\n";
    let topology = parse_native("test.yaml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let policy = Policy { paths_max: 8, tagging: fabric::Tagging::Source, ..Policy::default() };
    let planned = planner::plan(&topology, &policy, None).expect("two switches");
    let most = planned.summary.paths.as_ref().expect("path sets").paths_max;
    assert!((2..=3).contains(&most), "{most} paths over three cables");
    let text = setup(&planned).ri2n().expect("path sets");
    let line = format!("paths = {most}");
    assert!(text.lines().any(|own| own == line) && !text.contains("[[peer]]"), "{text}");
    let single = plan(["eth0", "eth1"], ["10.7.1.1", "10.7.1.2"], &Policy::default());
    assert_eq!(setup(&single).ri2n(), None);
}

/// Links join ports of one plane, whatever their order, and machines that meet in one plane alone are left out.
#[test]
fn settings_of_ri2n_name_ports_of_one_plane() {
    let text = "links: [\"s1:1 -- s3:1\", \"s2:9 -- s4:1\", \"s1:9 -- s2:1\"]\nswitches: {s1: {}, s2: {}, s3: {}, s4: {}}\nmachines:\n  \
                a: {nics: {eth0: {mac: \"02:00:00:00:01:01\", port: \"s1:2\"}, eth1: {mac: \"02:00:00:00:01:02\", port: \"s2:2\"}}}\n  \
                b: {nics: {eth0: {mac: \"02:00:00:00:01:03\", port: \"s4:3\"}, eth1: {mac: \"02:00:00:00:01:04\", port: \"s3:3\"}}}\n  \
                c: {nics: {eth0: {mac: \"02:00:00:00:01:05\", port: \"s1:4\"}, eth1: {mac: \"02:00:00:00:01:06\", port: \"s3:4\"}}}\n";
    let topology = parse_native("test.yaml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let planes = planner::planes(&topology, &Default::default(), None).expect("a and b have two paths");
    let plan = planner::plan(&topology, &Policy { planes, ..Policy::default() }, None).expect("four switches");
    let of = |name| HostSetup::new(&plan, "d1", machine(&plan, name)).expect("two ports").ri2n();
    let address = |host: &str| {
        let id = plan.topology.host_ids().find(|id| plan.topology.host(*id).name == host).expect("of the plan");
        plan.host_intent(id).address
    };
    let (a0, a1, b0, b1) = (address("a/eth0"), address("a/eth1"), address("b/eth0"), address("b/eth1"));
    let text = of("a").expect("planes");
    let link = |ours, theirs| format!("{{local = \"{ours}\", remote = \"{theirs}\"}}");
    let mut links = [link(a0, b1), link(a1, b0)];
    if !text.contains(&format!("[{}]", links.join(", "))) {
        links.reverse();
    }
    assert!(text.ends_with(&format!("\n# b\n[[peer]]\nlinks = [{}]\n", links.join(", "))), "{text}");
    assert_eq!(of("c"), None, "c has both its ports on one plane");
    let plain = Plan { policy: Policy { planes: fabric::Planes::default(), ..plan.policy.clone() }, ..plan.clone() };
    assert_eq!(HostSetup::new(&plain, "d1", machine(&plain, "a")).expect("two ports").ri2n(), None);
}

#[test]
fn ports_with_ipv6_addresses_have_no_arp() {
    let plan = plan(["eth0", "eth1"], ["2001:db8:0:7::1", "2001:db8:0:7::2"], &Policy::default());
    let setup = setup(&plan);
    for file in setup.files() {
        assert!(!file.text.contains("arp_") && !file.text.contains("ipv4"), "{}: {}", file.name, file.text);
    }
    let text = setup.script();
    assert!(text.contains("ip -6 route replace 2001:db8:0:7::/64 dev 'eth0' table 1001\n"), "{text}");
    assert!(text.contains("ip -6 rule add from 2001:db8:0:7::2 table 1002 priority 1002\n"), "{text}");
    let names: Vec<String> = setup.files().into_iter().map(|file| file.name).collect();
    assert_eq!(
        names,
        ["setup.sh", "environment", "network/50-espalier-eth0.network", "network/50-espalier-eth1.network"]
    );
    assert!(setup.environment().contains("\nNCCL_SOCKET_FAMILY=AF_INET6\n"));
}

#[test]
fn networkd_has_the_same_values() {
    let plan = plan(["enp1s0f0np0", "ib.8001"], ["10.0.0.1", "10.0.0.2"], &Policy::default());
    let files = setup(&plan).networkd();
    assert_eq!(
        files[1].text,
        "# Machine gpu1, from plan d1.\n# ib.8001, rail 1: 10.0.0.2\n[Match]\nName=ib.8001\nMACAddress=02:00:00:00:01:02\n\n\
         [Link]\nMTUBytes=1500\n\n[Address]\nAddress=10.0.0.2/8\n\n[Route]\nDestination=10.0.0.0/8\nScope=link\n\
         PreferredSource=10.0.0.2\nTable=1002\n\n[RoutingPolicyRule]\nFrom=10.0.0.2\nTable=1002\nPriority=1002\n"
    );
    // A dot in a name would be a slash if the first separator were a dot.
    assert!(files[2].text.contains("\nnet/ipv4/conf/ib.8001/rp_filter = 2\n"), "{}", files[2].text);
}

#[test]
fn the_environment_follows_the_rails_of_the_plan() {
    for (rails, cross) in [(Rails::Within, 0), (Rails::Across, 1)] {
        let plan = plan(["eth0", "eth1"], ["10.0.0.1", "10.0.0.2"], &Policy { rails, ..Policy::default() });
        let text = setup(&plan).environment();
        let set: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let expected = [
            "NCCL_SOCKET_IFNAME==eth0,eth1".to_owned(),
            "NCCL_SOCKET_FAMILY=AF_INET".to_owned(),
            format!("NCCL_CROSS_NIC={cross}"),
            "UCX_NET_DEVICES=eth0,eth1".to_owned(),
            "OMPI_MCA_btl_tcp_if_include=eth0,eth1".to_owned(),
        ];
        assert_eq!(set, expected);
    }
}

#[test]
fn what_cannot_be_set_up_is_refused() {
    let plan = plan(["eth0/1", "enp129s0f1np1-a"], ["10.0.0.1", "10.0.0.2"], &Policy::default());
    let error = HostSetup::new(&plan, "d1", machine(&plan, "gpu1")).expect_err("a slash");
    assert_eq!(error, HostSetupError::NotADevice { host: "gpu1/eth0/1".to_owned(), device: "eth0/1".to_owned() });
    let error = HostSetup::new(&plan, "d1", machine(&plan, "login")).expect_err("one port");
    assert_eq!(error, HostSetupError::OnePort("login".to_owned()));
    for (name, is) in [("", false), (".", false), ("..", false), ("0123456789abcde", true), ("0123456789abcdef", false)]
    {
        assert_eq!(is_device_name(name), is, "{name:?}");
    }
}

#[test]
fn ports_of_a_bond_have_no_setup_of_their_own() {
    let text = "links: [\"s1:1 -- s2:1\"]\nswitches: {s1: {}, s2: {}}\nmachines:\n  m:\n    bond: failover\n    \
                mac: \"02:00:00:00:01:01\"\n    nics: {eth0: {port: \"s1:2\"}, eth1: {port: \"s2:2\"}}\n\
                hosts:\n  login: {mac: \"02:00:00:00:02:01\", port: \"s1:3\"}\n";
    let topology = parse_native("test.yaml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = planner::plan(&topology, &Policy::default(), None).expect("two switches");
    assert!(!needs_setup(&plan, machine(&plan, "m")));
    let refused = HostSetup::new(&plan, "d1", machine(&plan, "m"));
    assert_eq!(refused, Err(HostSetupError::Bond("m".to_owned())));
}
