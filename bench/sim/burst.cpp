// The burst of `bench_sim burst` in SimGrid: platform (`espalier export --to simgrid`), and a file whose lines are sender,
// receiver, octets and the end that our flow level found. Prints CPU seconds, and how far ends are apart at most.
#include <simgrid/s4u.hpp>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

struct Transfer {
    std::string to;
    double bytes, ours;
};

int main(int argc, char **argv)
{
    s4u::Engine engine(&argc, argv);
    engine.load_platform(argv[1]);
    std::map<std::string, std::vector<Transfer>> of;
    std::ifstream lines(argv[2]);
    for (std::string from, to; lines >> from >> to;) {
        double bytes, ours;
        lines >> bytes >> ours;
        of[from].push_back({to, bytes, ours});
    }
    double apart = 0, end = 0;
    long count = 0;
    s4u::Comm::on_completion_cb([&](s4u::Comm const &) { count++; });
    for (auto const &entry : of) {
        auto *host = engine.host_by_name(entry.first);
        for (auto const &transfer : entry.second)
            host->add_actor("sender", [&, host] {
                s4u::Comm::sendto(host, engine.host_by_name(transfer.to), transfer.bytes);
                double now = s4u::Engine::get_clock();
                end = std::max(end, now);
                apart = std::max(apart, std::fabs(now / transfer.ours - 1));
            });
    }
    std::clock_t begun = std::clock();
    engine.run();
    std::printf("transfers %ld cpu_s %.3f ends_s %.9f apart_max %.6f\n", count,
                double(std::clock() - begun) / CLOCKS_PER_SEC, end, apart);
}
