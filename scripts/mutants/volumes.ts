import type { Mutant } from "../sim-mutant-list.ts";

const lives = "drivers";

/** In what a kubelet does with CSI drivers and their volumes. */
export const volumeMutants: readonly Mutant[] = [
  {
    name: "uncertain-stage-taken-for-done",
    lives,
    file: "src/csi/device-mounts.ts",
    from: 'if (staging.state === "staged") return;',
    to: 'if (staging.state !== "absent") return;',
  },
  {
    name: "uncertain-stage-taken-for-none",
    lives,
    file: "src/csi/device-mounts.ts",
    from: 'if (isFinal(error) && before === "absent")',
    to: 'if (before === "absent")',
  },
  {
    name: "staged-without-record",
    lives,
    file: "src/csi/device-mounts.ts",
    from: "await files.save(volume);",
    to: "",
  },
  {
    name: "failed-unstage-taken-for-done",
    lives,
    file: "src/csi/device-mounts.ts",
    from: "() => client.unstage(handle, stagingPath, { signal }));",
    to: "() => client.unstage(handle, stagingPath, { signal })).catch(() => {});",
  },
  {
    name: "staged-volume-not-in-use",
    lives,
    file: "src/csi/device-mounts.ts",
    from: "this.#deps.inUse()?.use(name, holderOfStaged);",
    to: "",
  },
  {
    name: "in-use-for-good",
    lives,
    file: "src/csi/device-mounts.ts",
    from: "inUse()?.release(unique, holderOfStaged);",
    to: "",
  },
  {
    name: "unstaged-before-unpublished",
    lives,
    file: "src/csi/csi-found.ts",
    from: "await unpublishNow(parts, volume, signal);\n        publications.remove(uid, name);",
    to:
      "devices.release(driver, handle, `${uid}/${name}`);\n" +
      "        await unpublishNow(parts, volume, signal);\n        publications.remove(uid, name);",
  },
  {
    name: "failed-unpublish-taken-for-done",
    lives,
    file: "src/csi/csi-found.ts",
    from: "return { error, until: parts.drivers.has(driver) ? undefined : parts.drivers.registered(driver) };",
    to: "return undefined;",
  },
  {
    name: "uncertain-publish-taken-for-none",
    lives,
    file: "src/csi/csi-volume.ts",
    from: "if (isFinal(error) && !isKnown) {",
    to: "if (!isKnown) {",
  },
  {
    name: "published-by-an-earlier-life",
    lives,
    file: "src/csi/csi-volume.ts",
    from: 'return this.#publication.state === "published";',
    to: 'return this.#publication.state !== "absent";',
  },
  {
    name: "never-published-again",
    lives,
    file: "src/csi/csi-volume.ts",
    from: "objects.peek(driver)?.spec.requiresRepublish === true &&",
    to: "objects.peek(driver)?.spec.requiresRepublish === undefined &&",
  },
  {
    name: "attachment-without-the-node",
    lives,
    file: "src/volumes/attachments.ts",
    from: "if (isListed && problem === undefined) {",
    to: "if (problem === undefined) {",
  },
  {
    name: "earlier-stage-forgotten",
    lives,
    file: "src/csi/volumes-at-start.ts",
    from: "devices.found(volume, stagedMountFiles({ files, mounts }, directory));",
    to: "",
  },
  {
    name: "earlier-holders-forgotten",
    lives,
    file: "src/csi/volumes-at-start.ts",
    from: "for (const { name: uid } of await directoriesOf(files, names.pods)) await takeUpPod(parts, uid);",
    to: "",
  },
  {
    name: "drivers-missing-in-csinode",
    lives,
    file: "src/csi/csi-node-object.ts",
    from: "drivers: [...updated, ...added]",
    to: "drivers: [...updated]",
  },
  {
    name: "one-pod-mounts-at-a-time",
    lives,
    file: "src/volumes/volume-manager.ts",
    from: "turn: new Semaphore(1)",
    to: "turn: (globalThis.oneTurn ??= new Semaphore(1))",
  },
  {
    name: "volumes-of-waiting-pods-removed",
    lives,
    file: "src/pods/housekeeping.ts",
    from: "const known = waits || workers",
    to: "const known = workers",
  },
  {
    name: "export-taken-for-mounted",
    file: "src/volumes/nfs-plugin.ts",
    from: "isSetUp: () => isMountPoint(this.#deps.mounts, directory),",
    to: "isSetUp: async () => (await this.#deps.files.list(paths.volume(this.name, ''))).length > 0,",
  },
  {
    name: "export-left-mounted",
    file: "src/volumes/nfs-plugin.ts",
    from: "for (const target of mounts.toReversed()) await unmount(mounting, target);",
    to: "",
  },
  {
    name: "expansion-not-told",
    lives,
    file: "src/csi/expansions.ts",
    from: 'if (isLess(claimSize(claim), size) || way === "recorded") await this.#finish(claim, size, signal);',
    to: "",
  },
  {
    name: "failed-expansion-taken-for-done",
    lives,
    file: "src/csi/expansions.ts",
    from: "if (!growth.known.isRefused) throw new VolumeError(expansionProblem(error), { cause: error });",
    to: "",
  },
];
