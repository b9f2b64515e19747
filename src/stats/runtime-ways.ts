import type { PodRef } from "../journal/entry.ts";

/** What statistics must know of a runtime, as cAdvisor does, because CRI does not report it. */
export interface RuntimeWays {
  /** The name of its process. */
  readonly program: string;
  /** False: what it says of the disk that images take is the size of its index of them. */
  readonly measuresImages: boolean;
  /** Sandboxes count as containers of this name. */
  readonly sandboxContainer: string;
  /** What the label `name` is for an instance of a container; a sandbox's is {@link RuntimeWays.sandboxContainer}. */
  readonly nameOf: (id: string, container: string, pod: PodRef, attempt: number) => string;
}

const usual: Omit<RuntimeWays, "program"> = { measuresImages: true, sandboxContainer: "", nameOf: (id) => id };

const crio: RuntimeWays = {
  program: "crio",
  measuresImages: false,
  sandboxContainer: "POD",
  nameOf: (_id, container, { name, namespace, uid }, attempt) => {
    return ["k8s", container, name, namespace, uid, attempt].join("_");
  },
};

/** @param runtimeName as the runtime's Version says: `containerd`, `cri-o`, `docker` for cri-dockerd */
export function runtimeWays(runtimeName: string): RuntimeWays {
  if (runtimeName === "cri-o") return crio;
  return { ...usual, program: runtimeName === "docker" ? "dockerd" : runtimeName };
}
