// The mesh of `bench_sim mesh` in ns-3: 16 switches in a 4x4 mesh as IP routers (ns-3's point-to-point devices cannot be
// bridged), a host on each, every host sends 1 Gbit/s of datagrams to all others in equal parts.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

#include <ctime>
#include <iostream>
#include <vector>

using namespace ns3;

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? std::stod(argv[1]) : 0.05;
    const uint32_t side = 4, count = side * side, payload = 1472, wire = payload + 66;
    NodeContainer hosts, switches;
    hosts.Create(count);
    switches.Create(count);
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(switches);
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    cable.SetChannelAttribute("Delay", TimeValue(NanoSeconds(500)));
    cable.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("85p"));
    Ipv4AddressHelper subnet("10.0.0.0", "255.255.255.252");
    auto join = [&](Ptr<Node> a, Ptr<Node> b) {
        auto interfaces = subnet.Assign(cable.Install(a, b));
        subnet.NewNetwork();
        return interfaces.GetAddress(0);
    };
    std::vector<Ipv4Address> address;
    for (uint32_t i = 0; i < count; i++)
        address.push_back(join(hosts.Get(i), switches.Get(i)));
    for (uint32_t i = 0; i < count; i++) {
        if (i % side + 1 < side)
            join(switches.Get(i), switches.Get(i + 1));
        if (i + side < count)
            join(switches.Get(i), switches.Get(i + side));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    double interval = wire * 8.0 * (count - 1) / 1e9;
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < count; i++) {
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(hosts.Get(i)).Get(0)));
        for (uint32_t k = 1; k < count; k++) {
            UdpClientHelper client(address[(i + k) % count], 9);
            client.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
            client.SetAttribute("Interval", TimeValue(Seconds(interval)));
            client.SetAttribute("PacketSize", UintegerValue(payload));
            client.Install(hosts.Get(i)).Start(Seconds(interval * k / count));
        }
    }
    Simulator::Stop(Seconds(seconds));
    std::clock_t begun = std::clock();
    Simulator::Run();
    double cpu = double(std::clock() - begun) / CLOCKS_PER_SEC;
    uint64_t delivered = 0;
    for (auto &sink : sinks)
        delivered += sink->GetTotalRx() / payload;
    std::cout << "delivered " << delivered << " cpu_s " << cpu << " delivered_per_s " << delivered / cpu << "\n";
    Simulator::Destroy();
}
