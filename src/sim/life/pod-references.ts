import type { Pod } from "../../api/pod.ts";
import type { SimRandom } from "../random.ts";

/**
 * A pod of the API server: many have a service account token, as in a real cluster; some a runtime class; a few are
 * bound to the wrong node, which rejects them.
 */
export function drawApiPod(pod: Pod, random: SimRandom): Pod {
  const hasToken = random.chance(0.4);
  const expirationSeconds = random.pick([600, 3607]);
  const hasClass = random.chance(0.1);
  const classed: Pod = hasClass ? { ...pod, spec: { ...pod.spec, runtimeClassName: "plain" } } : pod;
  const placed: Pod = random.chance(0.1)
    ? { ...classed, spec: { ...classed.spec, nodeSelector: { "example.com/elsewhere": "true" } } }
    : classed;
  return hasToken ? withToken(placed, expirationSeconds) : placed;
}

function withToken(pod: Pod, expirationSeconds: number): Pod {
  const { spec } = pod;
  const name = "kube-api-access";
  const sources = [
    { serviceAccountToken: { path: "token", expirationSeconds } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
  ];
  const mount = { name, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
  const containers = spec.containers.map((container) => {
    return { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] };
  });
  return {
    ...pod,
    spec: { ...spec, containers, volumes: [...(spec.volumes ?? []), { name, projected: { sources } }] },
  };
}

/** Static pods may not refer to API objects. */
export function withoutReferences(pod: Pod): Pod {
  const { spec } = pod;
  const volumes = (spec.volumes ?? []).filter(({ emptyDir, downwardAPI }) => (emptyDir ?? downwardAPI) !== undefined);
  const kept = new Set(volumes.map(({ name }) => name));
  const clean = <C extends Pod["spec"]["containers"][number]>({
    env: _env,
    volumeDevices: _devices,
    ...container
  }: C) => ({
    ...container,
    ...(container.volumeMounts && { volumeMounts: container.volumeMounts.filter(({ name }) => kept.has(name)) }),
  });
  const { volumes: _volumes, initContainers, containers, ...rest } = spec;
  return {
    ...pod,
    spec: {
      ...rest,
      ...(volumes.length > 0 && { volumes }),
      ...(initContainers && { initContainers: initContainers.map(clean) }),
      containers: containers.map(clean),
    },
  };
}
