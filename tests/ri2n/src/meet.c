// A server that greets its clients, one after the other, as `meet.py serve` does: meet PORT. To be linked statically.
#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: meet PORT");
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16))
		err(1, "listen");
	for (;;) {
		int client = accept(listener, NULL, NULL);
		char byte;
		if (client < 0)
			continue;
		if (write(client, "hello", 5) == 5)
			while (read(client, &byte, 1) > 0)
				;
		close(client);
	}
}
