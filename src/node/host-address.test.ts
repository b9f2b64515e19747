import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultRoutes, hostAddresses, type HostNetwork, podHostAddresses } from "./host-address.ts";

const anyone = { given: [], prefersV6: false };
const machine: HostNetwork = {
  interfaces: [
    { name: "lo", addresses: [] },
    { name: "docker0", addresses: ["172.17.0.1", "2001:db8:d::1"] },
    { name: "eth0", addresses: ["192.0.2.1", "192.0.2.2", "2001:db8::1"] },
  ],
  defaultRoutes: { v4: ["eth0"], v6: ["eth0"] },
  resolved: [],
};

test("a node is reached by the interface with the default route, IPv4 first", () => {
  assert.deepEqual(hostAddresses(anyone, undefined, machine), ["192.0.2.1"]);
  assert.deepEqual(hostAddresses({ given: [], prefersV6: true }, undefined, machine), ["2001:db8::1"]);
  const v6Only = { ...machine, defaultRoutes: { v4: [], v6: ["eth0"] } };
  assert.deepEqual(hostAddresses(anyone, undefined, v6Only), ["2001:db8::1"]);
});

test("where its name leads to an address of the machine, by that", () => {
  const named = (...resolved: string[]): string[] => hostAddresses(anyone, undefined, { ...machine, resolved });
  assert.deepEqual(named("127.0.1.1", "203.0.113.9", "192.0.2.2"), ["192.0.2.2"]);
  assert.deepEqual(named("2001:db8::1", "192.0.2.2"), ["192.0.2.2"]);
  assert.deepEqual(named("2001:db8::1"), ["2001:db8::1"]);
  assert.deepEqual(named("127.0.1.1", "203.0.113.9"), ["192.0.2.1"], "neither is the machine's");
});

test("by --node-ip, or by its name if that is an address", () => {
  const given = ["198.51.100.1", "2001:db8::5"];
  assert.deepEqual(hostAddresses({ given, prefersV6: false }, "192.0.2.7", machine), given);
  assert.deepEqual(hostAddresses(anyone, "192.0.2.7", machine), ["192.0.2.7"]);
});

test("an interface with a default route and without an address stands for the loopback's, and without routes the first counts", () => {
  const unnumbered = {
    ...machine,
    interfaces: [
      { name: "lo", addresses: ["198.51.100.7"] },
      { name: "docker0", addresses: ["172.17.0.1"] },
      { name: "eth0", addresses: [] },
    ],
  };
  assert.deepEqual(hostAddresses(anyone, undefined, unnumbered), ["198.51.100.7"]);
  const noRoutes = { v4: [], v6: [] };
  assert.deepEqual(hostAddresses(anyone, undefined, { ...unnumbered, defaultRoutes: noRoutes }), ["172.17.0.1"]);
  assert.deepEqual(hostAddresses(anyone, undefined, { interfaces: [], defaultRoutes: noRoutes, resolved: [] }), []);
});

test("default routes are read as the kernel writes them", () => {
  const v4 = [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "wlan0\t00000000\t0100000A\t0003\t0\t0\t600\t00000000\t0\t0\t0",
    "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0",
    "eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0",
    "",
  ].join("\n");
  const zero = "0".repeat(32);
  const v6 = [
    `${zero} 00 ${zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0`,
    `20010db8000000000000000000000000 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth1`,
    `${zero} 00 ${zero} 00 ${zero} ffffffff 00000001 00000000 00200200       lo`,
    "",
  ].join("\n");
  assert.deepEqual(defaultRoutes(v4, v6), { v4: ["wlan0", "eth0"], v6: ["eth0"] });
  assert.deepEqual(defaultRoutes("", ""), { v4: [], v6: [] });
  const tunnel = `${zero} 00 ${zero} 00 ${zero} 00000400 00000001 00000000 00000001      wg0\n`;
  assert.deepEqual(defaultRoutes("", tunnel + v6), { v4: [], v6: ["eth0"] }, "one without a gateway is a tunnel's");
  assert.deepEqual(defaultRoutes(v4, tunnel), { v4: ["wlan0", "eth0"], v6: [] });
  assert.deepEqual(defaultRoutes("", tunnel), { v4: [], v6: ["wg0"] }, "better than an arbitrary interface");
});

test("pods get the Node's internal address first, and one of the other family", () => {
  const internal = (address: string): { type: string; address: string } => ({ type: "InternalIP", address });
  const external = (address: string): { type: string; address: string } => ({ type: "ExternalIP", address });
  const name = { type: "Hostname", address: "node1" };
  assert.deepEqual(podHostAddresses([name, external("203.0.113.1"), internal("192.0.2.1")]), ["192.0.2.1"]);
  assert.deepEqual(podHostAddresses([internal("192.0.2.1"), internal("192.0.2.2"), external("2001:db8::1")]), [
    "192.0.2.1",
    "2001:db8::1",
  ]);
  assert.deepEqual(podHostAddresses([external("203.0.113.1")]), ["203.0.113.1"]);
  assert.deepEqual(podHostAddresses([name]), []);
});
