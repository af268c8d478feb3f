// The language of the page, and what else a person has chosen.

export const languages = { en: 'English', zh: '中文' } as const
export type Language = keyof typeof languages

export const speech = $state<{ language: Language }>({ language: preferred() })

// preferred is what was chosen before, or what the browser asks for.
function preferred(): Language {
  const chosen = remembered('language')
  if (chosen === 'en' || chosen === 'zh') return chosen
  return globalThis.navigator?.language?.startsWith('zh') ? 'zh' : 'en'
}

// remembered and remember keep what a person likes, and never a secret. A browser may
// refuse to keep anything.
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem('weir.' + name)
  } catch {
    return null
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem('weir.' + name, value)
  } catch {
    // Then it is chosen again next time.
  }
}
