import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { type Service, services, serviceVariables } from "./service-variables.ts";

function service(name: string, namespace: string, clusterIP: string, ports: object[]): Service {
  return services.decode({ metadata: { name, namespace }, spec: { clusterIP, ports } });
}

const named = service("data-base", "ns", "10.0.0.1", [
  { name: "p-q", port: 80, protocol: "TCP" },
  { port: 53, protocol: "UDP" },
]);
const kubernetes = service("kubernetes", "default", "10.96.0.1", [{ name: "https", port: 443 }]);
const hosts = (pod = podWith({}), all = [named, kubernetes]): string[] =>
  serviceVariables(pod, all)
    .filter(({ name }) => name.endsWith("_SERVICE_HOST"))
    .map(({ name, value }) => `${name}=${value}`);

test("a service becomes the variables that the Go kubelet gives", () => {
  assert.deepEqual(
    serviceVariables(podWith({}), [named]).map(({ name, value }) => `${name}=${value}`),
    [
      "DATA_BASE_SERVICE_HOST=10.0.0.1",
      "DATA_BASE_SERVICE_PORT=80",
      "DATA_BASE_SERVICE_PORT_P_Q=80",
      "DATA_BASE_PORT=tcp://10.0.0.1:80",
      "DATA_BASE_PORT_80_TCP=tcp://10.0.0.1:80",
      "DATA_BASE_PORT_80_TCP_PROTO=tcp",
      "DATA_BASE_PORT_80_TCP_PORT=80",
      "DATA_BASE_PORT_80_TCP_ADDR=10.0.0.1",
      "DATA_BASE_PORT_53_UDP=udp://10.0.0.1:53",
      "DATA_BASE_PORT_53_UDP_PROTO=udp",
      "DATA_BASE_PORT_53_UDP_PORT=53",
      "DATA_BASE_PORT_53_UDP_ADDR=10.0.0.1",
    ],
  );
});

test("a pod sees the services of its namespace and the API server; without links the API server alone", () => {
  assert.deepEqual(hosts(), ["DATA_BASE_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_HOST=10.96.0.1"]);
  assert.deepEqual(hosts(podWith({ enableServiceLinks: false })), ["KUBERNETES_SERVICE_HOST=10.96.0.1"]);
  assert.deepEqual(hosts(podWith({}, { namespace: "other" })), ["KUBERNETES_SERVICE_HOST=10.96.0.1"]);
});

test("a service of the pod's namespace hides the API server's, and headless ones have no variables", () => {
  const own = service("kubernetes", "ns", "10.0.0.9", []);
  for (const all of [
    [own, kubernetes],
    [kubernetes, own],
  ]) {
    assert.deepEqual(hosts(podWith({}), all), ["KUBERNETES_SERVICE_HOST=10.0.0.9"]);
  }
  assert.deepEqual(hosts(podWith({}), [service("headless", "ns", "None", [{ port: 1 }])]), []);
});
