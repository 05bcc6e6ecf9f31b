// Loses packets that arrive at a port: a section for each share.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

static unsigned (*chance)(void) = (void *)BPF_FUNC_get_prandom_u32;

__attribute__((section("all"), used)) int lose_all(struct __sk_buff *packet) {
	return TC_ACT_SHOT;
}

__attribute__((section("tenth"), used)) int lose_tenth(struct __sk_buff *packet) {
	return chance() % 10 == 0 ? TC_ACT_SHOT : TC_ACT_OK;
}

__attribute__((section("hundredth"), used)) int lose_hundredth(struct __sk_buff *packet) {
	return chance() % 100 == 0 ? TC_ACT_SHOT : TC_ACT_OK;
}

char _license[] __attribute__((section("license"))) = "GPL";
