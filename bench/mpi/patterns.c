/*
 * Patterns of MPI that load a network unlike each other, timed.
 *
 *   patterns WHICH BYTES SECONDS     prints "seconds S" for one round, the mean of those that fit into the time
 *   patterns WHICH BYTES 0 ROUNDS    the same of so many rounds, and "begins" before them
 *
 * all-to-all: MPI_Alltoall with BYTES for each pair. transpose: the rank in row i and column j of a square exchanges BYTES with that in
 * row j and column i. What arrives is checked.
 */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(unsigned char *at, int bytes, int from, int to)
{
	memset(at, from * 16 + to, bytes);
}

static void check(const unsigned char *at, int bytes, int from, int to)
{
	for (int i = 0; i < bytes; i++)
		if (at[i] != (unsigned char)(from * 16 + to)) {
			fprintf(stderr, "patterns: wrong bytes from rank %d at rank %d\n", from, to);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4 && argc != 5)
		MPI_Abort(MPI_COMM_WORLD, 2);
	int bytes = atoi(argv[2]), all = strcmp(argv[1], "all-to-all") == 0, side = (int)lround(sqrt(ranks)), rounds = 0, go_on = 1;
	int rounds_wanted = argc == 5 ? atoi(argv[4]) : 1;
	int partner = rank % side * side + rank / side;
	unsigned char *sent = malloc((size_t)ranks * bytes), *got = malloc((size_t)ranks * bytes);
	double began = 0, now = 0;
	while (go_on) {
		if (rounds == 1) { /* the first sets up connections */
			MPI_Barrier(MPI_COMM_WORLD);
			began = MPI_Wtime();
			if (rank == 0 && argc == 5) {
				puts("begins");
				fflush(stdout);
			}
		}
		if (all) {
			for (int to = 0; to < ranks; to++)
				fill(sent + (size_t)to * bytes, bytes, rank, to);
			MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
			for (int from = 0; from < ranks; from++)
				check(got + (size_t)from * bytes, bytes, from, rank);
		} else if (partner != rank) {
			fill(sent, bytes, rank, partner);
			MPI_Sendrecv(sent, bytes, MPI_BYTE, partner, 0, got, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
			check(got, bytes, partner, rank);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		now = MPI_Wtime();
		rounds++;
		go_on = rounds <= rounds_wanted || now - began < atof(argv[3]);
		MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("seconds %.4f\n", (now - began) / (rounds - 1));
	MPI_Finalize();
	return 0;
}
