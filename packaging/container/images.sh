# SPDX-License-Identifier: MIT
# For the scripts of this folder, after packaging/common.sh: images without a registry and without a daemon, by buildah. Needs root, as
# its isolation here is a chroot. Sets $archive; all else is in $scratch, and gone at the end.
archive=build/package/container/freehold-$version-$(dpkg --print-architecture).tar
((EUID == 0)) || refuse "buildah's chroots need root; docker build needs this script for nothing: see docs/install.md"
script/bootstrap container
scratch=$(mktemp -d)
end_images() {
  buildah rm --all >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap end_images EXIT
export CONTAINERS_STORAGE_CONF=$scratch/storage.conf
cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "vfs"
runroot = "$scratch/run"
graphroot = "$scratch/graph"
END

# debian_image: debian:bookworm-slim as mmdebstrap makes it.
debian_image() {
  local container base=build/package/debian.tar
  debian_root "$base"
  container=$(buildah from scratch)
  quietly buildah add "$container" "$base" /
  quietly buildah config --cmd bash "$container"
  quietly buildah commit --rm "$container" docker.io/library/debian:bookworm-slim
}
build_image() { quietly buildah bud --isolation chroot --network host --pull-never "$@"; }
