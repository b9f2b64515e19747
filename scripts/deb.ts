/**
 * Builds the Debian package, reproducibly: the same sources give the same bytes, in whatever directory they are.
 *
 *   deb.ts [--out DIRECTORY] [--node PROGRAM]
 *
 * --out: the directory for podwright_VERSION_ARCHITECTURE.deb (default: the working directory). --node: the Node.js to
 * package (default: the set-up's). SOURCE_DATE_EPOCH is the time of all files (default: the last commit's).
 */
import {
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
  lutimes,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { version } from "../src/base/version.ts";
import { fileListName, packageListName } from "./launch.ts";
import { orderly, output, root, sourceEpoch } from "./repository.ts";

function readWords(): { readonly outDirectory: string; readonly node: string } {
  try {
    const { values } = parseArgs({ options: { out: { type: "string" }, node: { type: "string" } } });
    return {
      outDirectory: resolve(values.out ?? "."),
      node: resolve(values.node ?? join(root, "node_modules/node/bin/node")),
    };
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: deb.ts [--out DIRECTORY] [--node PROGRAM]`);
    process.exit(2);
  }
}

const { outDirectory, node } = readWords();

/** The C library's minimum versions are those of the official Node.js builds. */
const dependencies = [
  "libc6 (>= 2.28)",
  "libgcc-s1",
  "libstdc++6 (>= 8)",
  "busybox-static",
  "catatonit",
  "containerd (>= 1.6) | containerd.io",
  "containernetworking-plugins",
  "iptables",
  "runc | containerd.io",
];

const maintainer = "podwright developers <podwright@users.noreply.github.com>";

function controlFile(architecture: string, installedKibibytes: number): string {
  return `Package: podwright
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${installedKibibytes}
Depends: ${dependencies.join(", ")}
Suggests: systemd
Section: admin
Priority: optional
Description: kubelet that explains everything it does
 podwright runs Kubernetes pods on this machine through a container runtime
 (CRI), from manifest files without a cluster, or as a node of a cluster. It
 records every observation, decision and action, and explains the state of
 any pod from them. It brings its own Node.js, and starts nothing by itself.
`;
}

/** The Node.js project links its libraries statically. */
const overrides = `# Node.js is built by its project as one program with its libraries inside.
podwright: embedded-library
podwright: hardening-no-pie
podwright: hardening-no-fortify-functions
podwright: spelling-error-in-binary
podwright: executable-stack-in-shared-library
# V8's compiled code and the program itself.
podwright: package-contains-documentation-outside-usr-share-doc
`;

function copyright(licences: string): string {
  const indented = (text: string): string =>
    text
      .split("\n")
      .map((line) => (line.trim() === "" ? " ." : ` ${line.trimEnd()}`))
      .join("\n");
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: podwright

Files: *
Copyright: podwright's contributors
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
Comment:
${indented(licences)}

Files: usr/lib/podwright/node_modules/node/*
Copyright: Node.js contributors and those named below
License: Node.js
 The licences of Node.js and of what is in it are in /usr/share/doc/podwright/nodejs-notices.txt.gz.
`;
}

async function stage(tree: string, epoch: number): Promise<void> {
  const lib = join(tree, "usr/lib/podwright");
  const share = join(tree, "usr/share");
  const doc = join(share, "doc/podwright");
  const put = async (path: string, data: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, data);
  };
  const unpacked = new Set([fileListName, packageListName]);
  await cp(join(root, "dist"), join(lib, "dist"), {
    recursive: true,
    filter: (path) => !unpacked.has(path.slice(path.lastIndexOf("/") + 1)),
  });
  await cp(join(root, "examples"), join(lib, "examples"), { recursive: true });
  for (const script of ["bin/podwright", "scripts/node.sh"]) {
    await put(join(lib, script), await readFile(join(root, script)));
    await chmod(join(lib, script), 0o755);
  }
  const packedNode = join(lib, "node_modules/node/bin/node");
  await mkdir(dirname(packedNode), { recursive: true });
  await output("strip", ["--strip-unneeded", "-o", packedNode, node]);
  await chmod(packedNode, 0o755);
  await mkdir(join(tree, "usr/bin"), { recursive: true });
  await symlink("../lib/podwright/bin/podwright", join(tree, "usr/bin/podwright"));
  await mkdir(doc, { recursive: true });
  await symlink("../../../lib/podwright/examples", join(doc, "examples"));
  const man = await readFile(join(root, "share/man/podwright.1"));
  await put(join(share, "man/man1/podwright.1.gz"), gzipSync(man, { level: 9 }));
  const completions = join(root, "share/completions");
  await put(join(share, "bash-completion/completions/podwright"), await readFile(join(completions, "podwright.bash")));
  await put(join(share, "zsh/vendor-completions/_podwright"), await readFile(join(completions, "_podwright")));
  await put(
    join(share, "fish/vendor_completions.d/podwright.fish"),
    await readFile(join(completions, "podwright.fish")),
  );
  const licences = await readFile(join(root, "share/licenses.txt"), "utf8");
  await put(join(doc, "copyright"), copyright(licences));
  await put(join(doc, "nodejs-notices.txt.gz"), gzipSync(await nodeLicence(), { level: 9 }));
  await put(join(doc, "changelog.gz"), gzipSync(debianChangelog(epoch), { level: 9 }));
  await put(join(share, "lintian/overrides/podwright"), overrides);
}

async function nodeLicence(): Promise<string> {
  const [name] = (await readdir(join(root, "node_modules/node/node_modules"))).filter((entry) =>
    entry.startsWith("node-linux-"),
  );
  return await readFile(join(root, "node_modules/node/node_modules", name ?? "", "LICENSE"), "utf8");
}

function debianChangelog(epoch: number): string {
  const date = new Date(epoch * 1000).toUTCString().replace("GMT", "+0000");
  return `podwright (${version}) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- ${maintainer}  ${date}
`;
}

/** Normalizes modes and times, which depend on umask and checkout. */
async function settle(path: string, epoch: number): Promise<number> {
  const info = await lstat(path);
  let bytes = 0;
  if (info.isSymbolicLink()) {
    await lutimes(path, epoch, epoch);
    return 0;
  }
  if (info.isDirectory()) {
    for (const name of await readdir(path)) bytes += await settle(join(path, name), epoch);
    await chmod(path, 0o755);
  } else {
    await chmod(path, (info.mode & 0o111) === 0 ? 0o644 : 0o755);
    bytes = info.size;
  }
  await utimes(path, epoch, epoch);
  return bytes;
}

async function build(tree: string, epoch: number): Promise<string> {
  await stage(tree, epoch);
  const kibibytes = Math.ceil((await settle(tree, epoch)) / 1024);
  const architecture = await output("dpkg", ["--print-architecture"]);
  const control = join(tree, "DEBIAN");
  await mkdir(control);
  await writeFile(join(control, "control"), controlFile(architecture, kibibytes));
  for (const script of ["postinst", "prerm", "postrm"]) {
    await writeFile(join(control, script), await readFile(join(root, "scripts/deb", script)));
    await chmod(join(control, script), 0o755);
  }
  await settle(control, epoch);
  await utimes(tree, epoch, epoch);
  await mkdir(outDirectory, { recursive: true });
  const file = join(outDirectory, `podwright_${version}_${architecture}.deb`);
  const unfinished = `${file}.${process.pid}.tmp`;
  const words = ["--root-owner-group", "-Zxz", "-z3", "--threads-max=1", "--build", tree, unfinished];
  try {
    await output("dpkg-deb", words, { SOURCE_DATE_EPOCH: String(epoch) });
    await rename(unfinished, file);
  } finally {
    await rm(unfinished, { force: true });
  }
  return file;
}

await orderly(async () => {
  const epoch = await sourceEpoch();
  await output(process.execPath, ["scripts/package.ts"]);
  const tree = await mkdtemp(join(tmpdir(), "podwright-deb-"));
  try {
    console.log(await build(tree, epoch));
  } finally {
    await rm(tree, { recursive: true });
  }
});
