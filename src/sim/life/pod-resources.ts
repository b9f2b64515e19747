import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { SimRandom } from "../random.ts";

/** CPU and memory requests, with or without limits; some containers restart for a resize. */
export function withResources(pod: Pod, random: SimRandom, always: boolean): Pod {
  if (!random.chance(0.4) && !always) return pod;
  const mayRestart = pod.spec.restartPolicy !== "Never";
  const containers = pod.spec.containers.map((container) => {
    const requests = { cpu: `${random.integer(10, 500)}m`, memory: "64Mi" };
    const resources = random.chance(always ? 0.8 : 0.5) ? { requests, limits: requests } : { requests };
    const resourceName = random.pick(["cpu", "memory"]);
    const restarts = random.chance(always ? 0.5 : 0.3) && mayRestart && container.restartPolicy === undefined;
    return {
      ...container,
      resources,
      ...(restarts && { resizePolicy: [{ resourceName, restartPolicy: "RestartContainer" }] }),
    };
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}

/** The same pod with other amounts where it has any, as a resize allows. */
export function resized(pod: Pod, random: SimRandom): Pod {
  const containers = pod.spec.containers.map((container): Container => {
    const { requests, limits } = container.resources ?? {};
    if (requests?.["cpu"] === undefined || random.chance(0.3)) return container;
    const changed = amounts(random);
    // Only CPU and memory can be resized.
    const resources = { requests: { ...requests, ...changed }, ...(limits && { limits: { ...limits, ...changed } }) };
    return { ...container, resources };
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}

function amounts(random: SimRandom): Record<string, string> {
  return { cpu: `${random.integer(10, 500)}m`, memory: `${random.pick([32, 64, 128])}Mi` };
}
