import { podUid } from "../../base/ids.ts";
import { isStaticPod } from "../../api/pod-kind.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { mayRun } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const noPod: Pod = { metadata: { namespace: "", name: "", uid: podUid("") }, spec: { containers: [] } };

interface Begun {
  /** The run in which the pod got its first sandbox. */
  readonly life: number;
  /** Pods that podwright knew in that run before this one. */
  readonly after: ReadonlySet<string>;
}

/**
 * Two pods never hold one host port, unless one was already ending before podwright knew of it. Between a static pod
 * and one of the API server, the first that podwright learns of gets the port, even if it is the later one: the server
 * may be away, and manifests may be read late. A pod that has ended releases its port; if others remove the container
 * that proves its end, another run starts it again.
 */
export const ports: RuleMaker = ({ world, node, pods, unwanted }, broken): Rule => {
  /** Pods that podwright has learned of in this run, in that order. */
  const known = new Set<string>();
  /** The pods known before each. */
  const before = new Map<string, ReadonlySet<string>>();
  const begun = new Map<string, Begun>();
  /** The run in which pods were last seen to have ended. */
  const ended = new Map<string, number>();
  const tampered = new Set<string>();

  /** podwright has admitted the pod although it knew the other. */
  function knewOf(uid: string, other: string): boolean {
    const { life, after } = begun.get(uid) ?? { life: 0, after: new Set() };
    return life === node.lives && after.has(other);
  }

  /** The pod had ended when the other was admitted, and the proof has been removed. */
  function endWasLost(uid: string, other: string): boolean {
    const endedIn = ended.get(uid) ?? Number.POSITIVE_INFINITY;
    return tampered.has(uid) && endedIn < node.lives && (begun.get(other)?.life ?? 0) <= endedIn;
  }

  function judge(uid: string): void {
    const own = hostPorts(pods.get(uid));
    if (own.length === 0 || unwanted.has(uid)) return;
    for (const other of world.containers.values()) {
      const otherUid = other.config.labels["io.kubernetes.pod.uid"] ?? "";
      if (otherUid === uid || !mayRun(other)) continue;
      const shared = hostPorts(pods.get(otherUid)).find((port) => own.includes(port));
      if (shared === undefined) continue;
      const kinds = [uid, otherUid].map((each) => isStaticPod(pods.get(each) ?? noPod));
      const mayMeet = unwanted.has(otherUid) || kinds[0] !== kinds[1];
      if (mayMeet && !knewOf(uid, otherUid)) continue;
      if (endWasLost(uid, otherUid) || endWasLost(otherUid, uid)) continue;
      broken("one pod per host port", `${uid} and ${otherUid} both hold ${shared}`);
    }
  }

  /** A pod is rejected only for a port that another one holds, as far as podwright may know. */
  function refused(uid: string): void {
    const own = hostPorts(pods.get(uid));
    const others = new Set([...node.desired.keys(), ...node.pods().map(({ view }) => view.ref.uid)]);
    const hasOne = (other: string): boolean => hostPorts(pods.get(other)).some((port) => own.includes(port));
    if ([...others].some((other) => other !== uid && hasOne(other))) return;
    broken("no pod is rejected without reason", `${uid} wants ${own.join(", ")}, and no other pod has that`);
  }

  return {
    change: ({ type, podUid: uid }) => {
      if (type === "sandboxStarted" && !begun.has(uid)) {
        begun.set(uid, { life: node.lives, after: before.get(uid) ?? new Set() });
      }
      if (type === "started") judge(uid);
    },
    reborn: (uid) => {
      for (const each of [begun, ended, tampered]) each.delete(uid);
    },
    tampered: (uid) => void tampered.add(uid),
    entry: ({ what, pod }) => {
      if (what === "NodePorts" && pod !== undefined) refused(pod.uid);
      if (what === "PodTerminated" && pod !== undefined) ended.set(pod.uid, node.lives);
      if (what === lifeStarted) for (const each of [known, before]) each.clear();
      if (what !== "PodAdded" || pod === undefined) return;
      before.set(pod.uid, new Set(known));
      known.add(pod.uid);
    },
  };
};

/** With their protocols. */
function hostPorts(pod: Pod | undefined): string[] {
  return (pod?.spec.containers ?? []).flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort, protocol = "TCP" }) =>
      hostPort === undefined ? [] : `${protocol} ${hostPort}`,
    ),
  );
}
