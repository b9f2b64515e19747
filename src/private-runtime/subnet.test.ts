import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseSubnet, overlap, parseNetwork, parseRoutes } from "./subnet.ts";
import type { Ipv4Network } from "./subnet.ts";

function network(text: string): Ipv4Network {
  const parsed = parseNetwork(text);
  assert.ok(parsed, text);
  return parsed;
}

test("the default instance takes the first free /24", () => {
  assert.equal(chooseSubnet([], undefined), "10.88.0.0/24");
  assert.equal(chooseSubnet([network("10.88.0.0/24"), network("10.88.1.7")], undefined), "10.88.2.0/24");
});

test("a range that is entirely in use is skipped", () => {
  assert.equal(chooseSubnet([network("10.88.0.0/16")], undefined), "10.89.0.0/24");
  assert.equal(chooseSubnet([network("10.0.0.0/8"), network("172.30.0.0/24")], undefined), "172.30.1.0/24");
  assert.equal(chooseSubnet([network("10.0.0.0/8"), network("172.16.0.0/12")], undefined), undefined);
});

test("other instances start elsewhere and never with the default's subnet", () => {
  assert.equal(chooseSubnet([], "00000000"), "10.88.1.0/24");
  assert.equal(chooseSubnet([], "000000fe"), "10.88.255.0/24");
  assert.notEqual(chooseSubnet([], "0a1fe263"), "10.88.0.0/24");
});

test("networks overlap if one contains the other", () => {
  assert.ok(overlap(network("10.88.0.0/16"), network("10.88.255.0/24")));
  assert.ok(overlap(network("192.168.1.1"), network("0.0.0.0/0")));
  assert.ok(!overlap(network("10.88.0.0/24"), network("10.88.1.0/24")));
  assert.ok(overlap(network("255.255.255.0/24"), network("255.255.255.255")));
});

test("the kernel's routing table is read without its default route", () => {
  const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
podwright0	0000580A	00000000	0001	0	0	0	00FFFFFF	0	0	0
`;
  assert.deepEqual(parseRoutes(table, true), [
    { interface: "eth0", network: network("192.0.2.0/24") },
    { interface: "podwright0", network: network("10.88.0.0/24") },
  ]);
  assert.deepEqual(parseRoutes("Iface Destination\neth0 C0000200 0 1 0 0 0 FFFFFF00 0 0 0\n", false), [
    { interface: "eth0", network: network("192.0.2.0/24") },
  ]);
});

test("texts that are not IPv4 networks are rejected", () => {
  for (const text of ["", "10.88.0", "10.88.0.256/24", "10.88.0.0/33", "fd00::/64", "10.88.0.0/24 10.1.1.1"]) {
    assert.equal(parseNetwork(text), undefined, text);
  }
});
