/*
 * Ping-pong in the manner of the Intel MPI benchmarks, with verified data; then all ranks exchange with all for a while.
 *
 *   mpi SECONDS    table of bytes, microseconds (half a round trip) and MB/s; then verified exchanges for SECONDS
 */
#include "pattern.h"
#include <mpi.h>

#define BYTES_MAX (4 << 20)
#define EXCHANGE_BYTES (256 << 10)

static unsigned char out[BYTES_MAX], in[BYTES_MAX];

static void ping_pong(int rank)
{
	if (rank == 0)
		printf("%10s %10s %10s\n", "bytes", "us", "MB/s");
	for (int bytes = 1; bytes <= BYTES_MAX; bytes *= 4) {
		int rounds = bytes <= 4096 ? 500 : 20;
		double start = 0;
		fill(out, (size_t)bytes, (uint32_t)rank, (uint64_t)bytes);
		for (int i = -rounds / 10 - 1; i < rounds; i++) {
			if (i == 0)
				start = MPI_Wtime();
			if (rank == 0) {
				MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
				MPI_Recv(in, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (rank == 1) {
				MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
			}
		}
		double us = (MPI_Wtime() - start) / rounds / 2 * 1e6;
		if (rank < 2)
			verify(in, (size_t)bytes, (uint32_t)(1 - rank), (uint64_t)bytes);
		if (rank == 0)
			printf("%10d %10.2f %10.2f\n", bytes, us, bytes / us);
	}
}

static void exchange(int rank, int ranks, double seconds)
{
	double start = MPI_Wtime();
	int go_on = 1;
	uint64_t rounds = 0;
	unsigned char *all = malloc((size_t)ranks * EXCHANGE_BYTES), *back = malloc((size_t)ranks * EXCHANGE_BYTES);
	must(all && back);
	for (; go_on; rounds++) {
		for (int to = 0; to < ranks; to++)
			fill(all + (size_t)to * EXCHANGE_BYTES, EXCHANGE_BYTES, (uint32_t)(rank * ranks + to), rounds);
		MPI_Alltoall(all, EXCHANGE_BYTES, MPI_BYTE, back, EXCHANGE_BYTES, MPI_BYTE, MPI_COMM_WORLD);
		for (int from = 0; from < ranks; from++)
			verify(back + (size_t)from * EXCHANGE_BYTES, EXCHANGE_BYTES, (uint32_t)(from * ranks + rank), rounds);
		go_on = MPI_Wtime() - start < seconds;
		MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("verified %llu exchanges of %d ranks\n", (unsigned long long)rounds, ranks);
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(ranks >= 2 && argc == 2);
	ping_pong(rank);
	fflush(stdout);
	exchange(rank, ranks, atof(argv[1]));
	MPI_Finalize();
	return 0;
}
