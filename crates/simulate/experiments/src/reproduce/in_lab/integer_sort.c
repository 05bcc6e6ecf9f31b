/*
 * What NPB's IS does to a network: keys of all ranks are sorted over and over, each rank keeping a range of their values.
 *
 *   integer_sort ROUNDS    prints "seconds S" for all rounds together, or says which check failed and ends with 1
 *
 * A round: everybody counts its keys by the rank that keeps them, all counts are added up, each tells each how many come, and
 * the keys go to where they belong. What arrives is checked: its range, and that no key was lost or altered (their sum).
 * Source: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, 1994, section 2.3.5.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS (1 << 16)  /* of a rank */
#define VALUES (1 << 21)

static void must(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "integer_sort: %s\n", what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static uint64_t sum(const int *keys, int count)
{
	uint64_t total = 0;
	for (int i = 0; i < count; i++)
		total += (uint64_t)keys[i];
	return total;
}

static void round_trip_of_keys(int rank, int ranks, uint64_t *state, int *keys, int *sorted, int *arrived, int room)
{
	int counts[ranks], at[ranks], coming[ranks], from[ranks], all[ranks], next[ranks];
	int width = (VALUES + ranks - 1) / ranks, total = 0;
	memset(counts, 0, sizeof counts);
	for (int i = 0; i < KEYS; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		keys[i] = (int)(*state >> 43);
		counts[keys[i] / width]++;
	}
	for (int to = 0, begin = 0; to < ranks; begin += counts[to++])
		at[to] = next[to] = begin;
	for (int i = 0; i < KEYS; i++)
		sorted[next[keys[i] / width]++] = keys[i];
	MPI_Allreduce(counts, all, ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Alltoall(counts, 1, MPI_INT, coming, 1, MPI_INT, MPI_COMM_WORLD);
	for (int source = 0; source < ranks; source++) {
		from[source] = total;
		total += coming[source];
	}
	must(total == all[rank], "keys are missing");
	must(total <= room, "too many keys for one rank");
	MPI_Alltoallv(sorted, counts, at, MPI_INT, arrived, coming, from, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < total; i++)
		must(arrived[i] / width == rank, "a key came to the wrong rank");
	uint64_t sums[2] = { sum(keys, KEYS), sum(arrived, total) }, sums_of_all[2];
	MPI_Allreduce(sums, sums_of_all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	must(sums_of_all[0] == sums_of_all[1], "a key was altered");
}

int main(int argc, char **argv)
{
	int rank, ranks, rounds = argc == 2 ? atoi(argv[1]) : 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	must(rounds > 0, "usage: integer_sort ROUNDS");
	/* Twice the mean is out of reach for values that are drawn alike. */
	int room = 2 * KEYS;
	int *keys = malloc(sizeof(int) * (size_t)(2 * KEYS + room));
	must(keys != NULL, "out of memory");
	uint64_t state = 314159265 + (uint64_t)rank * 2718281828u;
	double begin = 0;
	/* The first round opens the connections and is not counted. */
	for (int i = -1; i < rounds; i++) {
		if (i == 0) {
			MPI_Barrier(MPI_COMM_WORLD);
			begin = MPI_Wtime();
		}
		round_trip_of_keys(rank, ranks, &state, keys, keys + KEYS, keys + 2 * KEYS, room);
	}
	double seconds = MPI_Wtime() - begin;
	if (rank == 0)
		printf("seconds %.6f\n", seconds);
	free(keys);
	MPI_Finalize();
	return 0;
}
