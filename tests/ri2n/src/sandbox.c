/*
 * A conversation under a filter of system calls that kills for any call that the program does not make itself.
 *
 *   sandbox IP PORT TURNS AFTER    installs the filter after AFTER of its TURNS; the server is `rtt serve`
 */
#include "pattern.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* As libseccomp does it. */
static void filter_calls(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(sendto),
		ALLOW(recvfrom),
		ALLOW(write),
		ALLOW(close),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	struct sockaddr_in remote = address_of(argv[1], argv[2]);
	int turns = atoi(argv[3]), after = atoi(argv[4]), fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned char buffer[64];
	uint32_t bytes = sizeof buffer;
	must(!connect(fd, (struct sockaddr *)&remote, sizeof remote));
	must(send(fd, &bytes, sizeof bytes, 0) == sizeof bytes);
	for (int i = 0; i < turns; i++) {
		if (i == after)
			filter_calls();
		fill(buffer, bytes, 1, (uint64_t)i * bytes);
		must(send(fd, buffer, bytes, 0) == (ssize_t)bytes);
		for (uint32_t done = 0; done < bytes;) {
			ssize_t n = recv(fd, buffer + done, bytes - done, 0);
			must(n > 0);
			done += (uint32_t)n;
		}
		verify(buffer, bytes, 1, (uint64_t)i * bytes);
	}
	close(fd);
	must(write(1, "done\n", 5) == 5);
	_exit(0);
}
