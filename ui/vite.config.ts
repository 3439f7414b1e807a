import { defineConfig } from 'vite';

// The built files are checked in and embedded by the server, so the same sources must give the same bytes:
// names depend on content only, and nothing of the machine or the moment goes in.
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // the page's content security policy forbids data: addresses
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    license: { fileName: 'licenses.txt' }, // of the libraries that are in the bundle
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/app-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/app-[hash][extname]',
      },
    },
  },
});
