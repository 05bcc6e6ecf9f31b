/* Shifts the wall clock of a program by the seconds that the file WALL_CLOCK_SHIFT holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*original)(clockid_t, struct timespec *);
	if (!original)
		original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int result = original(clock, time);
	const char *path = getenv("WALL_CLOCK_SHIFT");
	FILE *file = result == 0 && clock == CLOCK_REALTIME && path ? fopen(path, "r") : NULL;
	if (file) {
		long shift = 0;
		if (fscanf(file, "%ld", &shift) == 1)
			time->tv_sec += shift;
		fclose(file);
	}
	return result;
}
