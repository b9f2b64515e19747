import { nameOf } from "../world-model.ts";
import { forgetPod } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** An ephemeral container runs once in its pod's life, whatever its exit code and whatever happens to the sandbox. */
export const ephemeral: RuleMaker = ({ pods }, broken): Rule => {
  /** Containers that have run, by `uid/name`. */
  const ran = new Set<string>();
  /** Pods whose containers were removed by others: what has run is unknown. */
  const tampered = new Set<string>();
  return {
    change: ({ type, podUid: uid, container }) => {
      if (type !== "started" || container === undefined) return;
      const name = nameOf(container);
      if (pods.get(uid)?.spec.ephemeralContainers?.some((own) => own.name === name) !== true) return;
      const where = `${uid}/${name}`;
      if (ran.has(where) && !tampered.has(uid)) broken("ephemeral containers run once", `${where} runs again`);
      ran.add(where);
    },
    reborn: (uid) => {
      tampered.delete(uid);
      forgetPod(uid, ran);
    },
    tampered: (uid) => void tampered.add(uid),
  };
};
