// Browsers start no workers from files. The search of these pages then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) => Promise.all(scripts.map((one) => this.load(one)));
      this.ready = this.load(address);
    }
    load(address) {
      const inside = this.frame.contentDocument;
      const script = inside.createElement("script");
      script.src = new URL(address, document.baseURI);
      const done = new Promise((good, bad) => Object.assign(script, { onload: good, onerror: bad }));
      inside.body.append(script);
      return done;
    }
    receive(event) {
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
