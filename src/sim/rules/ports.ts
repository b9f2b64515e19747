import { isStaticPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { mayRun } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const noPod: Pod = { metadata: { namespace: "", name: "", uid: "" }, spec: { containers: [] } };

/** Two pods never hold one host port, unless one is on its way out. */
export const ports: RuleMaker = ({ world, pods, unwanted }, broken): Rule => ({
  change: ({ type, podUid: uid, container }) => {
    const own = hostPorts(pods.get(uid));
    if (type !== "started" || container === undefined || own.length === 0) return;
    for (const other of world.containers.values()) {
      const otherUid = other.config.labels["io.kubernetes.pod.uid"] ?? "";
      if (otherUid === uid || !mayRun(other) || unwanted.has(otherUid) || unwanted.has(uid)) continue;
      const shared = hostPorts(pods.get(otherUid)).find((port) => own.includes(port));
      if (shared === undefined) continue;
      // A pod that ends by itself holds its port until it is gone, and its successor may be there already.
      const names = [uid, otherUid].map((each) => pods.get(each)?.metadata.name);
      // What the API server wants is not known while it is away: a static pod may take a port of that then.
      const kinds = [uid, otherUid].map((each) => isStaticPod(pods.get(each) ?? noPod));
      if (kinds[0] !== kinds[1]) continue;
      if (names[0] !== names[1]) broken("one pod a host port", `${uid} and ${otherUid} both hold ${shared}`);
    }
  },
});

function hostPorts(pod: Pod | undefined): number[] {
  return (pod?.spec.containers ?? []).flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort }) => hostPort ?? []),
  );
}
