import { errorMessage } from "../base/errors.ts";
import type { JournalInput } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import { maxResolvConfBytes, resolvConfProblem } from "../runtime/config/dns.ts";

/** Upstream's message. */
const cgroupV1Warning =
  "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to " +
  "cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1";

/** The machine, and the configured names. */
export interface StartFacts {
  readonly cgroupVersion: 1 | 2;
  readonly resolvConf: string;
  readonly clusterDomain: string;
}

/** Warnings for the cluster at the node's start: properties of its machine that work now and will cause trouble. */
export async function startNotes(files: Pick<Files, "read">, facts: StartFacts): Promise<JournalInput[]> {
  const { cgroupVersion, resolvConf, clusterDomain } = facts;
  const notes: JournalInput[] = [];
  if (cgroupVersion === 1) notes.push({ kind: "note", what: "CgroupV1", message: cgroupV1Warning });
  if (resolvConf === "") return notes;
  const message = await files
    .read(resolvConf, maxResolvConfBytes)
    .then((bytes) => resolvConfProblem(resolvConf, new TextDecoder().decode(bytes), clusterDomain), errorMessage);
  if (message !== undefined) notes.push({ kind: "note", what: "CheckLimitsForResolvConf", message });
  return notes;
}
