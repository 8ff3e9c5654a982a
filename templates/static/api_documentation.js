"use strict";

const page = document.getElementById("documentation");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  validatorUrl: null,
  docExpansion: "list",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // Requests are authenticated by the session. Requests that change data need the CSRF token.
  requestInterceptor: (request) => {
    if (new URL(request.url, document.baseURI).origin === location.origin) {
      request.headers["X-CSRFToken"] = page.dataset.csrfToken;
    }
    return request;
  },
});

// Swagger UI has its own dark colours under this class.
const root = document.documentElement;
const colour = () => root.classList.toggle("dark-mode", root.getAttribute("data-bs-theme") === "dark");
new MutationObserver(colour).observe(root, { attributeFilter: ["data-bs-theme"] });
colour();

document.getElementById("version").addEventListener("change", (event) => event.target.form.submit());
