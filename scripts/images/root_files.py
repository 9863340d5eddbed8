"""The root file systems of the images: Debian's packages, unpacked and configured by mmdebstrap.

Nothing is installed in an image later: it contains neither apt nor its sources, lists and caches.
Debian's packages carry their licences in usr/share/doc.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from scripts.images.images import ContainerImage
from scripts.provision.places import cache
from scripts.provision.problem import SetUpProblem
from scripts.provision.steps import SetupSteps

RELEASE = "bookworm"
#: The account of all processes; the chart's pods have the same number.
ACCOUNT = 10001
_NOT_UNPACKED = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*")
#: Run before packages are configured. The Java package links its manual pages.
_BEFORE = 'mkdir -p "$1"/usr/share/man/man1'
_LINK_JAVA = (
    'for each in "$1"/usr/lib/jvm/java-[1-9][0-9]-openjdk-*; do'
    ' if [ -d "$each" ]; then ln --symbolic "${each#"$1"}" "$1"/opt/java; fi; done'
)
_REMOVE_APT = (
    'cd "$1" && rm --recursive --force etc/apt/sources.list etc/apt/sources.list.d'
    " etc/apt/apt.conf.d/70debconf var/log/* var/cache/*"
)
#: Run at the end, in this order. mmdebstrap itself removes the configuration and the lists of apt.
_AFTER = (
    f'echo "rillbase:x:{ACCOUNT}:{ACCOUNT}::/tmp:/usr/sbin/nologin" >> "$1"/etc/passwd',
    f'echo "rillbase:x:{ACCOUNT}:" >> "$1"/etc/group',
    *(
        f'install --directory --owner {ACCOUNT} --group {ACCOUNT} "$1"/var/lib/{name}'
        for name in ("rillbase", "rillbase-node")
    ),
    'if [ -e "$1"/usr/bin/python3 ]; then ln --symbolic python3 "$1"/usr/bin/python; fi',
    _LINK_JAVA,
    _REMOVE_APT,
    # Those of the machine that builds; a container engine writes its own.
    'for each in hostname hosts resolv.conf; do : > "$1"/etc/$each; done',
    # No program may gain rights that its caller lacks.
    'find "$1"/usr "$1"/opt "$1"/var -perm /6000 -type f -exec chmod ug-s {} +',
)


def build(steps: SetupSteps, image: ContainerImage, *, fresh: bool) -> Path:
    """Return the archive of an image's Debian packages; the cache keeps it unless ``fresh``."""
    command = _command(image)
    made_from = hashlib.sha256("\n".join(command).encode()).hexdigest()[:16]
    archive = cache() / "images" / f"{image.name}-{made_from}.tar"
    if archive.exists() and not fresh:
        return archive
    if shutil.which("mmdebstrap") is None:
        raise SetUpProblem("mmdebstrap is not installed; on Debian: apt-get install mmdebstrap")
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    with steps.step(f"Unpacking Debian's packages for {image.name}"):
        steps.run([*command, partial])
    return partial.replace(archive)


def _command(image: ContainerImage) -> Sequence[str]:
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_UNPACKED]
    options += ["--dpkgopt=path-include=/usr/share/doc/*/copyright", "--dpkgopt=force-unsafe-io"]
    options += [f"--essential-hook={_BEFORE}", *(f"--customize-hook={hook}" for hook in _AFTER)]
    if image.debian_packages:
        options.append(f"--include={','.join(image.debian_packages)}")
    return ["mmdebstrap", "--variant=essential", "--format=tar", *options, RELEASE]
