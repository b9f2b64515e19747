import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";

/**
 * A pod of the API server, bound to the tests' node, with one container that sleeps for ten hours.
 * @param container overrides for the container
 * @param spec overrides for the pod's spec
 */
export function boundPod(name: string, container: Fields = {}, spec: Fields = {}): Fields {
  const sleeper = { name: "c", image: DEMO_IMAGE, imagePullPolicy: "Never", command: ["sleep", "36000"] };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels: { app: name } },
    spec: {
      nodeName: "node1",
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      containers: [{ ...sleeper, ...container }],
      ...spec,
    },
  };
}
