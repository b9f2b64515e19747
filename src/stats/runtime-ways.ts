import type { PodRef } from "../journal/entry.ts";
import type { CgroupDriver } from "../resources/cgroup-names.ts";

/** What statistics must know about a runtime because CRI does not report it; cAdvisor has the same special cases. */
export interface RuntimeWays {
  /** Its process name. */
  readonly program: string;
  /** Where it puts containers of pods that have no cgroup of their own. */
  readonly ownCgroup: Readonly<Record<CgroupDriver, string>>;
  /** False: its figure for image storage covers only its index of images. */
  readonly measuresImages: boolean;
  /** The container name under which sandboxes are reported. */
  readonly sandboxContainer: string;
  /** The label `name` of a container instance; a sandbox's is {@link RuntimeWays.sandboxContainer}. */
  readonly nameOf: (id: string, container: string, pod: PodRef, attempt: number) => string;
}

const usual: Omit<RuntimeWays, "program"> = {
  ownCgroup: { cgroupfs: "/k8s.io", systemd: "/system.slice" },
  measuresImages: true,
  sandboxContainer: "",
  nameOf: (id) => id,
};

const crio: RuntimeWays = {
  program: "crio",
  ownCgroup: { cgroupfs: "/crio", systemd: "/system.slice" },
  measuresImages: false,
  sandboxContainer: "POD",
  nameOf: (_id, container, { name, namespace, uid }, attempt) => {
    return ["k8s", container, name, namespace, uid, attempt].join("_");
  },
};

/** @param runtimeName from the runtime's Version: `containerd`, `cri-o`, `docker` for cri-dockerd */
export function runtimeWays(runtimeName: string): RuntimeWays {
  if (runtimeName === "cri-o") return crio;
  return { ...usual, program: runtimeName === "docker" ? "dockerd" : runtimeName };
}
