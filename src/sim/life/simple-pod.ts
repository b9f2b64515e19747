import type { Pod } from "../../api/pod.ts";
import { withDefaults } from "../../sources/defaults.ts";
import { type Behaviour, behaviourCommand } from "../behaviour.ts";

const lasting: Behaviour = { exitAfterMs: undefined, exitCode: 0, deaf: false, unstartable: false };

/** A replacement pod with the name, UID and priority of another: one container that runs, without dependencies. */
export function simplePod(
  { metadata, spec }: Pod,
  more: Partial<Pod["spec"]>,
  behaviour: Partial<Behaviour> = {},
): Pod {
  const command = behaviourCommand({ ...lasting, ...behaviour });
  const volumeMounts = (more.volumes ?? []).map(({ name }) => ({ name, mountPath: `/${name}` }));
  // Something that resizes can change.
  const resources = { requests: { cpu: "10m", memory: "16Mi" } };
  const image = { image: "busybox", imagePullPolicy: "IfNotPresent" } as const;
  const container = { name: "c0", ...image, command, volumeMounts, resources };
  const { priority, priorityClassName } = spec;
  const manifest = withDefaults({
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name: metadata.name, namespace: metadata.namespace } },
    spec: {
      ...more,
      ...(priority !== undefined && { priority }),
      ...(priorityClassName !== undefined && { priorityClassName }),
      containers: [container],
    },
  });
  return { metadata, spec: manifest.spec };
}
