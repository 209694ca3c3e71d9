"use strict";

// Fetches the page anew and puts its <main> in the place of the one there is. The server escapes
// all that it writes, and a parsed document runs no script.

const EVERY = 2000; // milliseconds
const SHARE = 4; // of the time, at least, in which nothing is fetched: large pages come seldom
const DEADLINE = 10000; // milliseconds
const TYPING = 150; // milliseconds

const form = document.querySelector("form");
const contact = document.getElementById("contact");
let timer = 0;
let newest = 0; // the number of the newest request; older answers are dropped
let answered = new Date();

function address() {
  return "?" + new URLSearchParams(new FormData(form));
}

function later(delay) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, delay);
}

function say(text) {
  if (contact.textContent !== text) contact.textContent = text;
}

function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const old = document.querySelector("main");
  const focused = old.contains(document.activeElement) && document.activeElement.href;
  old.replaceWith(document.adoptNode(fresh.querySelector("main")));
  if (focused) [...document.links].find((link) => link.href === focused)?.focus();
  document.title = fresh.title;
}

async function refresh() {
  if (!getSelection().isCollapsed) {
    say("Not updated while text is selected.");
    return later(EVERY);
  }
  const number = ++newest;
  const begun = performance.now();
  try {
    const signal = AbortSignal.timeout(DEADLINE);
    const answer = await fetch(address(), { cache: "no-store", signal });
    const text = await answer.text();
    if (number !== newest) return;
    if (!answer.ok) throw new Error(text);
    show(text);
    answered = new Date();
    say("");
  } catch (error) {
    if (number !== newest) return;
    say(`No answer since ${answered.toLocaleTimeString()}: all below is as it was then.`);
  }
  later(Math.max(EVERY, SHARE * (performance.now() - begun)));
}

function search() {
  history.replaceState(null, "", address());
  later(TYPING);
}

form.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
document.addEventListener("visibilitychange", () => later(0));
later(EVERY);
