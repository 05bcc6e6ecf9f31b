# Debian's own kernel under qemu (no KVM needed), with an initramfs made here: what the scripts beside this one share.
#
#   vm_prepare PROGRAM...     skips (77), saying why, where something is missing; fetches the kernel once; begins an image
#   vm_program PATH [NAME]    puts a program into /bin, or where NAME says, without what a debugger needs
#   vm_modules NAME...        modules and what they need, loaded by vm_start in the guest
#   vm_systemd UNIT...        Debian's systemd as init, with these units of its own besides the few that it needs
#   vm_finish                 libraries of all programs; what the guest does comes from standard input
#   vm_finish_systemd         the same for a guest whose systemd runs /proof
#   vm_boot [QEMU OPTION]...  boots; what the guest says goes to standard output and to $cache/$vm_name.log
#
# A script sets vm_name before it sources this. $root, $cache, $image and $release are set for it.
root=$(cd "$here/../../.." && pwd)
cache=${CARGO_TARGET_DIR:-$root/target}/vm

skip() { echo "$vm_name: SKIPPED: $*" >&2; exit 77; }

vm_prepare() {
	for tool in qemu-system-x86_64 busybox dash strip cpio ip tc bridge dpkg-deb apt-get python3 "$@"; do
		command -v "$tool" >/dev/null || skip "$tool is missing; run tools/setup test"
	done
	mkdir -p "$cache"
	if ! ls "$cache"/linux-image-*.deb >/dev/null 2>&1; then
		package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ { print $2; exit }')
		[ -n "$package" ] || skip "apt knows no linux-image-amd64"
		(cd "$cache" && apt-get download -q "$package") || skip "the kernel package $package cannot be downloaded"
	fi
	if [ ! -d "$cache/kernel" ]; then
		rm -rf "$cache/kernel.new"
		dpkg-deb -x "$cache"/linux-image-*.deb "$cache/kernel.new"
		mv "$cache/kernel.new" "$cache/kernel"
	fi
	kernel=$(ls "$cache"/kernel/boot/vmlinuz-*)
	release=${kernel##*/vmlinuz-}
	image=$(mktemp -d)
	trap 'rm -r "$image"' EXIT
	for folder in bin dev proc sys run tmp etc modules; do mkdir "$image/$folder"; done
	chmod 755 "$image"
	chmod 1777 "$image/tmp"
	cp "$(command -v busybox)" "$image/bin/busybox"
	for tool in ip tc bridge; do vm_program "$(command -v $tool)"; done
	# A shell that runs iproute2's ip, where busybox's would run its own.
	vm_program "$(command -v dash)" /bin/sh
	echo 'root:x:0:0::/:/bin/sh' >"$image/etc/passwd"
	: >"$image/modules/order"
}

vm_program() {
	place=$image${2:-/bin/${1##*/}}
	mkdir -p "${place%/*}"
	cp -L "$1" "$place"
	# The image is unpacked into memory, where what a debugger needs has no place.
	strip -g "$place" 2>/dev/null || true
}

vm_modules() {
	# Every module says what it depends on in its .modinfo section; what it needs comes before it.
	python3 - "$cache/kernel/lib/modules/$release" "$@" >"$image/modules/order" <<'ORDER'
import pathlib, re, sys
paths = {path.stem.replace("-", "_"): path for path in pathlib.Path(sys.argv[1]).rglob("*.ko")}
order = []
def need(name):
    path = paths.get(name.replace("-", "_"))
    if path and path not in order:
        for depends in re.findall(rb"\0depends=([^\0]*)\0", b"\0" + path.read_bytes()):
            for other in filter(None, depends.decode().split(",")):
                need(other)
        order.append(path)
for name in sys.argv[2:]:
    need(name)
print(*order, sep="\n")
ORDER
	while read -r module; do cp "$module" "$image/modules/"; done <"$image/modules/order"
	sed -i 's,.*/,/modules/,' "$image/modules/order"
}

vm_finish() {
	for program in $(find "$image" -type f -perm -100); do ldd "$program" 2>/dev/null || true; done |
		grep -o '/[^ ]*' | sort -u | while read -r library; do
			[ -e "$image$library" ] && continue
			mkdir -p "$image$(dirname "$library")"
			cp -L "$library" "$image$library"
		done
	cat >"$image/main"
	cat >"$image/init" <<'START'
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin 2>/dev/null
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs run /run
while read -r module; do insmod "$module" || echo "vm: no $module"; done </modules/order
ip link set lo up
echo "vm: Linux $(uname -r)"
# Not busybox's own shell, which runs its own ip.
exec /bin/sh /main
START
	chmod +x "$image/init"
	(cd "$image" && find . | cpio -o -H newc --quiet | gzip -1) >"$cache/$vm_name.gz"
}

vm_boot() {
	echo "booting Linux $release"
	# In the foreground, so that what ends this script ends the machine too.
	timeout --foreground "${VM_TIMEOUT_S:-2700}" qemu-system-x86_64 -accel tcg -cpu max -m 2048 -smp 1 -nographic -no-reboot -nodefaults \
		-serial mon:stdio -kernel "$kernel" -initrd "$cache/$vm_name.gz" -append "console=ttyS0 quiet panic=-1" "$@" \
		</dev/null | tee "$cache/$vm_name.log"
}

vm_systemd() {
	[ -x /lib/systemd/systemd ] || skip "/lib/systemd/systemd is missing; run tools/setup test"
	vm_program /lib/systemd/systemd /lib/systemd/systemd
	vm_program /bin/udevadm
	vm_program /bin/systemctl
	ln -s /bin/udevadm "$image/lib/systemd/systemd-udevd"
	mkdir -p "$image/lib/systemd/system" "$image/lib/udev/rules.d" "$image/etc/systemd/system" "$image/var/lib" "$image/var/tmp" \
		"$image/usr/bin" "$image/root"
	# What makes a device a unit; nothing here has sysctl settings.
	sed /systemd-sysctl/d /lib/udev/rules.d/99-systemd.rules >"$image/lib/udev/rules.d/99-systemd.rules"
	for unit in basic sysinit local-fs swap sockets timers paths slices network network-pre multi-user shutdown umount final; do
		cp -L /lib/systemd/system/$unit.target "$image/lib/systemd/system/"
	done
	for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket "$@"; do
		cp -L "/lib/systemd/system/$unit" "$image/lib/systemd/system/"
	done
	cp /etc/os-release "$image/etc/"
	echo 0123456789abcdef0123456789abcdef >"$image/etc/machine-id"
	printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >"$image/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$image/etc/group"
	printf '[Manager]\nShowStatus=no\nLogTarget=console\nLogLevel=notice\nDefaultStandardOutput=null\nDefaultStandardError=null\n' >"$image/etc/systemd/system.conf"
	cat >"$image/lib/systemd/system/default.target" <<'UNIT'
[Unit]
Requires=basic.target systemd-udevd.service proof.service
UNIT
	cat >"$image/lib/systemd/system/proof.service" <<'UNIT'
[Unit]
After=basic.target systemd-udevd.service
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
Environment=PATH=/bin:/usr/local/bin
ExecStart=/bin/sh /proof
UNIT
}

vm_finish_systemd() {
	vm_finish <<'INIT'
# The root that the kernel begins with cannot be left by a sandbox; a tmpfs can.
mkdir /new
mount -t tmpfs new /new
for entry in bin etc lib lib64 modules proof root sbin usr var; do [ -e /$entry ] && cp -a /$entry /new/; done
for entry in dev proc sys run tmp; do mkdir /new/$entry; done
exec switch_root /new /lib/systemd/systemd
INIT
}
