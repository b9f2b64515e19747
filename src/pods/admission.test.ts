import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { admit, admitHugePages } from "./admission.ts";

type Port = NonNullable<Container["ports"]>[number];

function podOn(port: Partial<Port>, name = "web"): Pod {
  return podWith({ containers: [{ name: "c", ports: [{ containerPort: 80, ...port }] }] }, { name });
}

const rows: readonly [string, Partial<Port>, Partial<Port>, boolean][] = [
  ["the same port", { hostPort: 80 }, { hostPort: 80 }, true],
  ["another port", { hostPort: 80 }, { hostPort: 81 }, false],
  ["another protocol", { hostPort: 80 }, { hostPort: 80, protocol: "UDP" }, false],
  ["two addresses", { hostPort: 80, hostIP: "10.0.0.1" }, { hostPort: 80, hostIP: "10.0.0.2" }, false],
  ["one of all addresses", { hostPort: 80, hostIP: "10.0.0.1" }, { hostPort: 80 }, true],
  ["one of all IPv6 addresses", { hostPort: 80, hostIP: "::" }, { hostPort: 80, hostIP: "fd00::1" }, true],
  ["a port that is not the host's", {}, { hostPort: 80 }, false],
];

for (const [name, wanted, taken, refused] of rows) {
  test(`a pod that wants ${name} is ${refused ? "refused" : "admitted"}`, () => {
    const rejection = admit(podOn(wanted), [podOn(taken, "holder")]);
    assert.equal(rejection?.reason, refused ? "NodePorts" : undefined);
  });
}

test("a rejection names the port and who has it", () => {
  const rejection = admit(podOn({ hostPort: 80 }), [podOn({ hostPort: 80 }, "holder")]);
  assert.equal(rejection?.message, "Pod was rejected: host port TCP 0.0.0.0:80 is taken by pod ns/holder");
});

test("ports of sidecars count as well, those of init containers that end do not", () => {
  const init: Container = { name: "i", ports: [{ containerPort: 80, hostPort: 80 }] };
  const holder = (container: Container): Pod =>
    podWith({ containers: [{ name: "c" }], initContainers: [container] }, { name: "holder" });
  assert.equal(admit(podOn({ hostPort: 80 }), [holder({ ...init, restartPolicy: "Always" })])?.reason, "NodePorts");
  assert.equal(admit(podOn({ hostPort: 80 }), [holder(init)]), undefined);
});

test("a pod that asks for more huge pages than other pods leave is refused, of whatever size the machine has none", () => {
  const asking = (amount: string, size = "2Mi"): Pod => {
    const limits = { cpu: "1", [`hugepages-${size}`]: amount };
    return podWith({ containers: [{ name: "c", resources: { limits, requests: limits } }] });
  };
  const allocatable = { cpu: 4, "hugepages-2Mi": "8Mi" };
  assert.equal(admitHugePages(asking("8Mi"), [], allocatable), undefined);
  assert.equal(admitHugePages(asking("4Mi", "2048Ki"), [asking("4Mi")], allocatable), undefined);
  assert.deepEqual(admitHugePages(asking("6Mi"), [asking("4Mi")], allocatable), {
    reason: "OutOfhugepages-2Mi",
    message:
      "Pod was rejected: Node didn't have enough resource: hugepages-2Mi, requested: 6291456, used: 4194304, capacity: 8388608",
  });
  assert.equal(admitHugePages(asking("1Gi", "1Gi"), [], allocatable)?.reason, "OutOfhugepages-1Gi");
});
