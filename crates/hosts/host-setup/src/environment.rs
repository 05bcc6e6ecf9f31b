//! Environment variables for programs that choose ports by themselves.
//!
//! Source: NCCL's user guide, "Environment Variables"; UCX's FAQ; Open MPI's manual, "TCP".

use fabric::Rails;

use crate::HostSetup;

impl HostSetup<'_> {
    /// Lines of `NAME=value`, which shells, systemd (`EnvironmentFile=`) and container engines (`--env-file`) read.
    pub fn environment(&self) -> String {
        let devices = self.devices();
        let families = [self.has_ipv4(), self.nics.iter().any(|nic| nic.address.is_ipv6())];
        let family = match families {
            [true, false] => "NCCL_SOCKET_FAMILY=AF_INET\n",
            [false, true] => "NCCL_SOCKET_FAMILY=AF_INET6\n",
            _ => "# NCCL_SOCKET_FAMILY: not set, since some ports have IPv4 addresses and some IPv6.\n",
        };
        let (cross, why) = match self.rails {
            Rails::Within => {
                (0, "the plan counts traffic within rails alone (--rails within), so a ring stays on one NIC")
            }
            Rails::Across => {
                (1, "the plan counts traffic between all NICs (--rails across), so a ring may change NICs")
            }
        };
        format!(
            "# {}.\n\
             # In a shell: set -a; . ./environment; set +a\n\n\
             # NCCL and RCCL, sockets: these devices and no others. The second = has names taken as they are, not as prefixes.\n\
             # Its sockets bind no address: what they send into one subnet leaves by the first NIC, unless each NIC has a subnet of its own.\n\
             NCCL_SOCKET_IFNAME=={devices}\n{family}\
             # NCCL_CROSS_NIC {cross}: {why}.\n\
             NCCL_CROSS_NIC={cross}\n\
             # NCCL_IB_HCA: the plan does not know RDMA devices; for RoCE, name those that `rdma link` shows for these network devices.\n\n\
             # UCX, over TCP. UCX uses no devices but those named: for RoCE, name the RDMA devices and their ports, as mlx5_0:1.\n\
             UCX_NET_DEVICES={devices}\n\n\
             # Open MPI, over TCP.\n\
             OMPI_MCA_btl_tcp_if_include={devices}\n",
            self.origin()
        )
    }
}
